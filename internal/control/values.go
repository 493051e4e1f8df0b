package control

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// sessionID is a session id. We encode it as "0x…", because numbers in some languages have
// fewer than 64 bits, and decode it from that form or from a number.
type sessionID int64

// MarshalJSON implements json.Marshaler.
func (s sessionID) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// String formats the id as the server's log does.
func (s sessionID) String() string { return fmt.Sprintf("0x%x", uint64(s)) }

// UnmarshalJSON implements json.Unmarshaler.
func (s *sessionID) UnmarshalJSON(b []byte) (err error) {
	text := string(b)
	if text[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}
	*s, err = parseSession(text)
	return err
}

func parseSession(text string) (sessionID, error) {
	if id, err := strconv.ParseInt(text, 10, 64); err == nil {
		return sessionID(id), nil
	}
	digits, _ := strings.CutPrefix(strings.ToLower(text), "0x")
	id, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || len(digits) == len(text) {
		return 0, bad("session %q: want a number, or 0x and hexadecimal digits", text)
	}
	return sessionID(id), nil //nolint:gosec // the same 64 bits as in the protocol
}

// duration is a time span: "1.5s", "2m", or a number of milliseconds.
type duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (d *duration) UnmarshalJSON(b []byte) error {
	var ms float64
	if err := json.Unmarshal(b, &ms); err == nil {
		*d = duration(ms * float64(time.Millisecond))
		return d.check(string(b))
	}
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return bad("duration %s: want a text such as \"1.5s\", or milliseconds", b)
	}
	long, err := time.ParseDuration(text)
	if err != nil {
		return bad("duration %q: want a text such as \"1.5s\", or milliseconds", text)
	}
	*d = duration(long)
	return d.check(text)
}

func (d *duration) check(text string) error {
	if *d < 0 {
		return bad("duration %s: want 0 or more", text)
	}
	return nil
}

// opName is an operation, encoded by ZooKeeper's name for it; 0 means none.
type opName proto.Op

// MarshalJSON implements json.Marshaler.
func (o opName) MarshalJSON() ([]byte, error) { return json.Marshal(proto.Op(o).String()) }

// UnmarshalJSON implements json.Unmarshaler.
func (o *opName) UnmarshalJSON(b []byte) (err error) {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return bad("op %s: want a text such as \"getData\"", b)
	}
	*o, err = parseOp(text)
	return err
}

// clientOp reports whether clients can request op.
func clientOp(op proto.Op) bool { return op.Kind() != proto.Unknown || op == proto.OpCreateSession }

func parseOp(text string) (opName, error) {
	var names []string
	for _, op := range proto.Ops() {
		if !clientOp(op) {
			continue
		}
		if strings.EqualFold(op.String(), text) {
			return opName(op), nil
		}
		names = append(names, op.String())
	}
	slices.Sort(names)
	return 0, bad("unknown op %q: want one of %s", text, strings.Join(names, ", "))
}

// codeName is an error code. It's decoded from its name in Java (NONODE, NoNode) or
// in Kazoo (NoNodeError), or from its number.
type codeName proto.Code

// MarshalJSON implements json.Marshaler.
func (c codeName) MarshalJSON() ([]byte, error) { return json.Marshal(proto.Code(c).String()) }

// lowestCode is below all error codes of the protocol.
const lowestCode = -200

// UnmarshalJSON implements json.Unmarshaler.
func (c *codeName) UnmarshalJSON(b []byte) error {
	plain := func(s string) string {
		return strings.TrimSuffix(strings.ReplaceAll(strings.ToLower(s), "_", ""), "error")
	}
	text := strings.Trim(string(b), `"`)
	number, err := strconv.Atoi(text)
	for code := proto.Code(-1); code > lowestCode; code-- {
		known := !strings.HasPrefix(code.String(), "Code ")
		if known && (err == nil && int(code) == number || err != nil && plain(code.String()) == plain(text)) {
			*c = codeName(code)
			return nil
		}
	}
	return bad("code %s: want a code of the protocol such as \"NoNode\" or -101", b)
}
