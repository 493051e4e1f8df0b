package proto

import "encoding/binary"

// Sizes in bytes of the fixed parts of a frame, of a session's password and of an encoded
// Stat.
const (
	LengthSize        = 4  // the frame's own length
	RequestHeaderSize = 8  // xid, type
	ReplyHeaderSize   = 16 // xid, zxid, err
	PasswordSize      = 16
	StatSize          = 68
)

// Special xids.
const (
	XidNotification int32 = -1
	XidPing         int32 = -2
	XidAuth         int32 = -4
	XidSetWatches   int32 = -8
)

// RequestHeader opens every request after the handshake.
type RequestHeader struct {
	Xid int32
	Op  Op
}

// Decode reads h.
func (h *RequestHeader) Decode(r *Reader) {
	h.Xid = r.Int()
	h.Op = Op(r.Int())
}

// Append appends h to b.
func (h *RequestHeader) Append(b []byte) []byte {
	return AppendInt(AppendInt(b, h.Xid), int32(h.Op))
}

// ReplyHeader opens every reply and notification.
type ReplyHeader struct {
	Xid  int32
	Zxid int64
	Err  Code
}

// Decode reads h.
func (h *ReplyHeader) Decode(r *Reader) {
	h.Xid = r.Int()
	h.Zxid = r.Long()
	h.Err = Code(r.Int())
}

// Append appends h to b.
func (h *ReplyHeader) Append(b []byte) []byte {
	return AppendInt(AppendLong(AppendInt(b, h.Xid), h.Zxid), int32(h.Err))
}

// BeginFrame reserves space for a frame's length at the end of b. It returns b
// and the mark to pass to EndFrame.
func BeginFrame(b []byte) ([]byte, int) { return append(b, 0, 0, 0, 0), len(b) }

// EndFrame writes the length of the frame begun at mark.
func EndFrame(b []byte, mark int) []byte {
	binary.BigEndian.PutUint32(b[mark:], uint32(len(b)-mark-LengthSize))
	return b
}

// AppendFrame appends payload as one frame.
func AppendFrame(b, payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(payload))), payload...)
}
