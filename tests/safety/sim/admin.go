package sim

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// patience is how long an administrator waits for a reply, in fake time.
const patience = 20 * time.Second

// reconfig asks a server to change the ensemble, as zkCli's reconfig does.
func reconfig(p *process, joining, leaving string) (proto.Code, error) {
	nc, err := p.srv.Dial()
	if err != nil {
		return 0, err
	}
	defer nc.Close()
	_ = nc.SetDeadline(time.Now().Add(patience))
	hello := proto.ConnectRequest{TimeOut: int32(patience.Milliseconds()), Passwd: make([]byte, proto.PasswordSize)}
	if _, err := exchange(nc, hello.Append(nil)); err != nil {
		return 0, err
	}
	h := proto.RequestHeader{Xid: 1, Op: proto.OpReconfig}
	req := proto.ReconfigRequest{Joining: orNull(joining), Leaving: orNull(leaving), NewMembers: proto.NullString, CurConfigID: -1}
	body, err := exchange(nc, req.Append(h.Append(nil)))
	if err != nil {
		return 0, err
	}
	r := proto.NewReader(body)
	var reply proto.ReplyHeader
	reply.Decode(&r)
	bye := proto.RequestHeader{Xid: 2, Op: proto.OpCloseSession}
	_, _ = exchange(nc, bye.Append(nil)) // otherwise the session would expire
	return reply.Err, r.Err()
}

// orNull returns null, which requests no change, instead of an empty list.
func orNull(list string) string {
	if list == "" {
		return proto.NullString
	}
	return list
}

// exchange sends a frame and returns the next frame it receives.
func exchange(nc net.Conn, body []byte) ([]byte, error) {
	if _, err := nc.Write(proto.AppendFrame(nil, body)); err != nil {
		return nil, err
	}
	var size [4]byte
	if _, err := io.ReadFull(nc, size[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > 1<<20 {
		return nil, fmt.Errorf("a frame of %d bytes", n)
	}
	frame := make([]byte, n)
	_, err := io.ReadFull(nc, frame)
	return frame, err
}
