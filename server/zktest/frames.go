package zktest

import (
	"encoding/binary"

	"github.com/zkgo/zkgo/proto"
)

// frames splits the server's output to one client into frames. It isn't safe for concurrent
// use: the goroutine that writes to the connection owns it.
type frames struct {
	begun   bool // a complete frame has been written
	lost    bool // the stream isn't framed: a four-letter word, or TLS
	head    []byte
	left    int    // bytes of the frame that are missing
	frame   []byte // the bytes received so far, if the frame is kept
	kept    bool
	session int64
}

// longestFrame is longer than any reply.
const longestFrame = 1 << 28

// take consumes the next part of the stream and calls whole for every frame that ends in
// this part. We keep the content, and pass it to whole, only for the first frame and for
// frames that begin while keep is set.
func (f *frames) take(b []byte, keep bool, whole func(frame []byte, first bool)) {
	for len(b) > 0 && !f.lost {
		if len(f.head) < proto.LengthSize {
			n := min(len(b), proto.LengthSize-len(f.head))
			f.head, b = append(f.head, b[:n]...), b[n:]
			if len(f.head) < proto.LengthSize {
				return
			}
			f.left, f.kept, f.frame = int(binary.BigEndian.Uint32(f.head)), keep || !f.begun, nil
			f.lost = f.left <= 0 || f.left > longestFrame
			continue
		}
		n := min(len(b), f.left)
		if f.kept {
			f.frame = append(f.frame, b[:n]...)
		}
		if f.left, b = f.left-n, b[n:]; f.left > 0 {
			return
		}
		if !f.begun {
			f.noteSession()
		}
		if f.kept {
			whole(f.frame, !f.begun)
		}
		f.begun, f.head, f.frame = true, f.head[:0], nil
	}
}

// noteSession reads the session id from the handshake response.
func (f *frames) noteSession() {
	var h proto.ConnectResponse
	r := proto.NewReader(f.frame)
	if h.Decode(&r); r.Err() == nil {
		f.session = h.SessionID
	}
}
