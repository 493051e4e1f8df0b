package zkfiles

import (
	"strconv"
	"strings"
)

// How the names of the files begin, before a dot and a zxid.
const (
	snapshotPrefix = "snapshot"
	logPrefix      = "log"
)

// zxidOf returns the zxid in the name of a file as ZooKeeper reads it, −1 when
// it is not a file with that prefix.
func zxidOf(name, prefix string) int64 {
	parts := strings.Split(name, ".")
	if len(parts) < 2 || parts[0] != prefix {
		return -1
	}
	zxid, err := strconv.ParseInt(parts[1], 16, 64)
	if err != nil {
		return -1
	}
	return zxid
}
