package failover

import "github.com/zkgo/zkgo/proto"

// setReply returns the body of a reply to setData.
func setReply(version int32) []byte {
	r := proto.SetDataResponse{Stat: proto.Stat{Version: version}}
	return r.Append(nil)
}
