"""What any launch needs: compiler, launches, limits, tuning tables, graphs and streams; and the threads of the CPU."""
