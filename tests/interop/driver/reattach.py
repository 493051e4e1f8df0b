"""placeholder"""
NAME="reattach"
ALONE = False
NEEDS=""
