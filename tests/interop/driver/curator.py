"""placeholder"""
NAME="curator"
NEEDS=""
