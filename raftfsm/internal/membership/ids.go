package membership

import (
	"math"
	"strconv"
	"strings"

	"github.com/hashicorp/raft"
)

// NoServer means no server. It isn't the zero value, because 0 is a valid server id.
const NoServer uint64 = math.MaxUint64

// FounderID returns the ServerID of a server on the disk that formed the ensemble.
func FounderID(server uint64) raft.ServerID {
	return raft.ServerID(strconv.FormatUint(server, 10))
}

// JoinerID returns the ServerID of a server on any other disk.
func JoinerID(server, disk uint64) raft.ServerID {
	return raft.ServerID(strconv.FormatUint(server, 10) + "." + strconv.FormatUint(disk, 10))
}

// ServerOf returns the id of the server that a ServerID belongs to, or NoServer if it
// is not a ServerID.
func ServerOf(id raft.ServerID) uint64 {
	n, _, _ := strings.Cut(string(id), ".")
	server, err := strconv.ParseUint(n, 10, 64)
	if err != nil || server > MaxServer {
		return NoServer
	}
	return server
}
