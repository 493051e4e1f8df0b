package zkfiles

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"testing"

	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// zeros is an endless file of zeros.
type zeros struct{ read int }

func (z *zeros) Read(b []byte) (int, error) {
	clear(b)
	z.read += len(b)
	return len(b), nil
}

// TestEntriesOfAnACLAreBounded: if a snapshot announces an ACL of two billion entries of 12 zeros,
// we should reject it after as many bytes as a field may have.
func TestEntriesOfAnACLAreBounded(t *testing.T) {
	t.Parallel()
	head := binary.BigEndian.AppendUint32(nil, 0x5a4b534e) // "ZKSN"
	head = binary.BigEndian.AppendUint32(head, 2)
	head = binary.BigEndian.AppendUint64(head, math.MaxUint64)
	head = binary.BigEndian.AppendUint32(head, 0) // sessions
	head = binary.BigEndian.AppendUint32(head, 1) // lists
	head = binary.BigEndian.AppendUint64(head, 1) // the list's number
	head = binary.BigEndian.AppendUint32(head, math.MaxInt32)
	rest := new(zeros)
	r := io.MultiReader(bytes.NewReader(head), rest)
	_, err := ReadSnapshot("s", r, 0, Limits{MaxField: 1 << 20}, tree.New(), session.NewTable())
	if !errors.Is(err, ErrTooLong) {
		t.Errorf("%v", err)
	}
	if rest.read > 8<<20 {
		t.Errorf("%d bytes were read", rest.read)
	}
}
