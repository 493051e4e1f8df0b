package conformance

import (
	"bytes"
	"fmt"
	"time"
)

// connectFields are the parts of a connect packet, in wire order.
var connectFields = []field{
	{name: "protocol", kind: kindInt, def: "0"},
	{name: "last", kind: kindLong, def: "0"},
	{name: "timeout", kind: kindInt, def: "30000"},
	{name: "session", kind: kindLong, def: "0"},
	{name: "password", kind: kindString, def: "hex:00000000000000000000000000000000"},
	{name: "readOnly", kind: kindByte, def: "0"},
}

// connect opens a connection, sends the connect packet with the requests of the
// block in the same segment, and records the replies.
func (r *runner) connect(l line) error {
	if len(l.words) < 2 {
		return fmt.Errorf("connect needs a name")
	}
	name := l.words[1]
	packet, err := r.connectPacket(l.words[2:])
	if err != nil {
		return err
	}
	c, err := dial(name, r.addr)
	if err != nil {
		r.print("%s <- refused", name)
		return nil
	}
	if old, ok := r.conns[name]; ok {
		_ = old.net.Close()
	} else {
		r.order = append(r.order, name)
	}
	r.conns[name] = c
	wire, closing, err := r.encode(c, l.block)
	if err != nil {
		return err
	}
	sent := time.Now()
	c.write(append(packet, wire...), false)
	payload, err := c.frame()
	if err != nil {
		return r.noteEOF(c, err)
	}
	r.print("%s <- %s", name, r.norm.handshake(payload))
	d := &decoder{b: payload}
	_, timeout := d.int(), d.int()
	c.session, c.password = d.long(), bytes.Clone(d.blob())
	if timeout <= 0 {
		return r.untilEOF(c)
	}
	entries, err := r.collect(c, sent, func([]entry) bool { return len(c.pending) == 0 })
	r.record(c, entries, nil)
	if err != nil {
		return r.noteEOF(c, err)
	}
	if closing {
		return r.untilEOF(c)
	}
	return nil
}

// connectPacket builds the packet. "session=NAME" continues the session of that
// connection, with its password unless another is given; the password "wrong"
// differs from it in one bit, "short" lacks a byte. "readOnly=none" omits the
// last byte, as old clients do.
func (r *runner) connectPacket(words []string) ([]byte, error) {
	a, err := sortOut(connectFields, words)
	if err != nil {
		return nil, err
	}
	var e encoder
	known, continued := r.conns[a.fields["session"]]
	for _, f := range connectFields {
		text, given := a.fields[f.name]
		if !given {
			text = f.def
		}
		switch {
		case f.name == "session" && continued:
			e.long(known.session)
		case f.name == "password" && continued && !given:
			e.blob(known.password)
		case len(known.passwordOrNil()) == 0 && (text == "wrong" || text == "short"):
			return nil, fmt.Errorf("connect password=%s needs a session to continue", text)
		case f.name == "password" && text == "wrong":
			wrong := bytes.Clone(known.password)
			wrong[len(wrong)-1] ^= 1
			e.blob(wrong)
		case f.name == "password" && text == "short":
			e.blob(known.password[:len(known.password)-1])
		case f.name == "readOnly" && text == "none":
		default:
			if err := r.marks.appendField(&e, f.kind, text); err != nil {
				return nil, fmt.Errorf("connect %s: %w", f.name, err)
			}
		}
	}
	return r.marks.damage(e.b, a)
}
