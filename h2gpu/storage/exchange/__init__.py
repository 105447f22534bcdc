"""Files of others: tables of sites read, maps of predictions written.

    .csv   a line of names, then numbers              read (pandas), written
    .gpkg  GeoPackage: points and columns             read (GeoPandas), coordinate reference system kept
    .npy .npz   NumPy's arrays, nothing pickled       read
    .tif   GeoTIFF: a band a column, on a grid        written (rasterio), reference system kept
    .nc    NetCDF: variables on a grid or at points   written (xarray, h5netcdf), reference system kept

All but NumPy's need the extra `files`; GDAL, which reads and writes GeoPackage and GeoTIFF, comes with its packages.
"""

from h2gpu.storage.exchange.maps import check_map, is_map, write_map
from h2gpu.storage.exchange.tables import Table, is_table, read_table

__all__ = ["Table", "check_map", "is_map", "is_table", "read_table", "write_map"]
