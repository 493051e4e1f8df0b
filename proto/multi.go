package proto

import (
	"errors"
	"fmt"
)

// MultiHeader precedes every operation and result of a multi. With Done set, it
// ends the multi.
type MultiHeader struct {
	Op   Op
	Done bool
	Err  Code
}

// Decode reads h.
func (h *MultiHeader) Decode(r *Reader) {
	h.Op = Op(r.Int())
	h.Done = r.Bool()
	h.Err = Code(r.Int())
}

// Append appends h to b.
func (h *MultiHeader) Append(b []byte) []byte {
	b = AppendInt(b, int32(h.Op))
	b = AppendBool(b, h.Done)
	return AppendInt(b, int32(h.Err))
}

// MultiOp is one operation of a multi or multiRead.
type MultiOp struct {
	Op  Op
	Req Record // of the type that Op has outside a multi
}

// MultiRequest is the body of multi and multiRead.
type MultiRequest struct {
	Ops []MultiOp
}

// maxOpsReused limits how many operations' records Decode reuses, so that we don't keep the
// records of a longer request in memory.
const maxOpsReused = 64

// Decode reads m, reusing the records of earlier decodes. An operation that
// ZooKeeper doesn't allow inside a multi fails the Reader, and so does a mixture of
// reads and writes.
func (m *MultiRequest) Decode(r *Reader) {
	if cap(m.Ops) > maxOpsReused {
		m.Ops = nil
	}
	m.Ops = m.Ops[:0]
	for {
		part, ok := readPart(r, m.record)
		if !ok {
			break
		}
		m.Ops = append(m.Ops, part)
		if (part.Op.Kind() == Read) != (m.Ops[0].Op.Kind() == Read) {
			r.Fail(errors.New("proto: reads and writes in one multi"))
		}
	}
	if len(m.Ops) == 0 {
		m.Ops = nil
	}
}

// record returns the record to read the next operation into.
func (m *MultiRequest) record(op Op) Record {
	if n := len(m.Ops); n < cap(m.Ops) {
		if old := m.Ops[:n+1][n]; old.Op == op && old.Req != nil {
			return old.Req
		}
	}
	return op.row().fresh(nil)
}

// readPart reads the next operation of a multi into the record that record returns for
// it. It returns false after the last operation and when r fails.
func readPart(r *Reader, record func(Op) Record) (MultiOp, bool) {
	var h MultiHeader
	h.Decode(r)
	if r.Err() != nil || h.Done {
		return MultiOp{}, false
	}
	if !h.Op.InMulti() {
		r.Fail(fmt.Errorf("proto: %v inside a multi", h.Op))
		return MultiOp{}, false
	}
	req := record(h.Op)
	req.Decode(r)
	return MultiOp{h.Op, req}, r.Err() == nil
}

// Append appends m to b.
func (m *MultiRequest) Append(b []byte) []byte {
	for _, op := range m.Ops {
		h := MultiHeader{Op: op.Op, Err: -1}
		b = op.Req.Append(h.Append(b))
	}
	return AppendMultiEnd(b)
}

// AppendMultiEnd appends the header that ends a multi request or response.
func AppendMultiEnd(b []byte) []byte {
	h := MultiHeader{Op: OpError, Done: true, Err: -1}
	return h.Append(b)
}

// AppendMultiError appends the entry in a multi's reply for an operation that failed, or
// that was not executed because another operation failed.
func AppendMultiError(b []byte, code Code) []byte {
	h, e := MultiHeader{Op: OpError, Err: code}, ErrorResponse{int32(code)}
	return e.Append(h.Append(b))
}
