"""Small published data sets, beside other packages."""
