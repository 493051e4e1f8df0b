"""placeholder"""
NAME="reattach"
NEEDS=""
