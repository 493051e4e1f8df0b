package proto

import "fmt"

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
	Req Record // *CreateRequest, *CreateTTLRequest, *DeleteRequest, *SetDataRequest, *CheckVersionRequest, *GetDataRequest, *GetChildrenRequest
}

// Path returns the path of the operation's request, or false if it has none.
func (m *MultiOp) Path() (string, bool) {
	switch q := m.Req.(type) {
	case *CreateRequest:
		return q.Path, true
	case *CreateTTLRequest:
		return q.Path, true
	case *DeleteRequest:
		return q.Path, true
	case *SetDataRequest:
		return q.Path, true
	case *CheckVersionRequest:
		return q.Path, true
	case *GetDataRequest:
		return q.Path, true
	case *GetChildrenRequest:
		return q.Path, true
	}
	return "", false
}

// MultiRequest is the body of multi and multiRead.
type MultiRequest struct {
	Ops []MultiOp
}

// maxOpsReused limits how many operations' records Decode reuses, so that a longer
// request's records don't stay in memory.
const maxOpsReused = 64

// Decode reads m, reusing the records that m holds or once held. An operation that
// ZooKeeper doesn't allow inside a multi fails the Reader, and so does a mixture of
// reads and writes.
func (m *MultiRequest) Decode(r *Reader) {
	if cap(m.Ops) > maxOpsReused {
		m.Ops = nil
	}
	m.Ops = m.Ops[:0]
	for {
		var h MultiHeader
		h.Decode(r)
		if r.Err() != nil || h.Done {
			break
		}
		req := m.record(h.Op)
		if req == nil {
			r.Fail(fmt.Errorf("proto: %v inside a multi", h.Op))
			return
		}
		if len(m.Ops) > 0 && (h.Op.Kind() == Read) != (m.Ops[0].Op.Kind() == Read) {
			r.Fail(fmt.Errorf("proto: reads and writes in one multi"))
			return
		}
		req.Decode(r)
		m.Ops = append(m.Ops, MultiOp{h.Op, req})
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
	return multiRecord(op)
}

// multiRecord returns a new record for an operation inside a multi, or nil if a
// multi may not contain op.
func multiRecord(op Op) Record {
	switch op {
	case OpCreate, OpCreate2, OpCreateContainer:
		return new(CreateRequest)
	case OpCreateTTL:
		return new(CreateTTLRequest)
	case OpDelete:
		return new(DeleteRequest)
	case OpSetData:
		return new(SetDataRequest)
	case OpCheck:
		return new(CheckVersionRequest)
	case OpGetData:
		return new(GetDataRequest)
	case OpGetChildren:
		return new(GetChildrenRequest)
	}
	return nil
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
