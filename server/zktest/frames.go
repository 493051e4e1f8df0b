package zktest

import (
	"encoding/binary"

	"github.com/zkgo/zkgo/proto"
)

// frames cuts what the server writes to one client into frames. Whoever writes
// to the connection uses it: that is one goroutine at a time.
type frames struct {
	begun   bool // a frame has been written whole
	lost    bool // these are no frames: a four-letter word, or TLS
	head    []byte
	left    int    // bytes of the frame that have not come
	frame   []byte // what came of it, if it is kept
	kept    bool
	session int64
}

// longestFrame is more than any reply has.
const longestFrame = 1 << 28

// take looks at more of the stream and calls whole for every frame that ends in
// it. Content is kept, and given to whole, only of frames that begin while keep
// is set, and of the first one.
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

// noteSession reads the session from the answer to the handshake.
func (f *frames) noteSession() {
	var h proto.ConnectResponse
	r := proto.NewReader(f.frame)
	if h.Decode(&r); r.Err() == nil {
		f.session = h.SessionID
	}
}
