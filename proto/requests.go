package proto

import "fmt"

// Requests decodes the bodies of requests into records that it keeps, one for each
// operation. Once it has the records, decoding allocates only vectors of strings, invalid
// UTF-8 and the operations of a long multi. Each record aliases its body, and we reuse it
// in the next call. The zero Requests is ready to use.
//
// Requests is not safe for concurrent use.
type Requests struct {
	records [len(table)]Record
	last    Op     // the operation with the record that was used last
	reader  Reader // a local variable would escape to the heap
	acls    []ACL  // of the body being decoded
}

// Decode decodes the body of op. The record is nil if op has none.
func (q *Requests) Decode(op Op, body []byte) (Record, error) {
	req := q.record(op)
	if req == nil {
		return nil, nil
	}
	q.open(body)
	req.Decode(&q.reader)
	if err := q.reader.Err(); err != nil {
		return nil, fmt.Errorf("body of %v: %w", op, err)
	}
	return req, nil
}

// Parts calls visit with each operation of a multi, until one call returns false. It
// decodes one operation at a time, so a long multi needs no more memory than a short one.
// An error means that the multi doesn't decode after the operations visited.
func (q *Requests) Parts(body []byte, visit func(part MultiOp) bool) error {
	q.open(body)
	for {
		part, ok := readPart(&q.reader, q.record)
		if !ok {
			return q.reader.Err()
		}
		more := visit(part)
		q.empty()
		if !more {
			return nil
		}
	}
}

// Forget empties the record that was used last, so that it doesn't keep the body in
// memory.
func (q *Requests) Forget() {
	q.empty()
	q.reader = Reader{}
}

// record returns the record for the body of op, nil if op has none.
func (q *Requests) record(op Op) Record {
	fresh := op.row().fresh
	if fresh == nil {
		return nil
	}
	at := &q.records[op-lowest]
	if *at == nil {
		*at = fresh(nil)
	}
	q.last = op
	return *at
}

func (q *Requests) open(body []byte) {
	q.emptyACLs()
	q.reader = Reader{buf: body, alias: true, acls: &q.acls}
}

// empty empties the record that was used last and the list in it.
func (q *Requests) empty() {
	q.emptyACLs()
	if req := q.records[q.last-lowest]; req != nil {
		q.last.row().fresh(req)
	}
}

// maxACLRoom is the capacity, in ACLs, above which we drop the shared slice.
const maxACLRoom = 1024

// emptyACLs empties the slice that all lists share.
func (q *Requests) emptyACLs() {
	clear(q.acls) // their strings alias the body
	if q.acls = q.acls[:0]; cap(q.acls) > maxACLRoom {
		q.acls = nil
	}
}
