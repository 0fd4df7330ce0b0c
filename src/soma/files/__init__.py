"""Files that survive a crash of who writes them."""

from soma.files._atomic import TEMPORARY, Before, make_folder, write_atomically

__all__ = ["Before", "TEMPORARY", "make_folder", "write_atomically"]
