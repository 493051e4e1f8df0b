package conformance

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// request is an encoded request, with the facts that the runner needs to read its reply.
type request struct {
	op    op
	xid   int32 // as expected in the reply
	wire  []byte
	flags []string // "maybe", "unordered", "anyzxid"
}

func (r request) has(flag string) bool { return slices.Contains(r.flags, flag) }

// options are the name=value words that every operation accepts.
var options = []string{"xid", "code", "trail", "cut", "len", "hdr", "end"}

// flags are words without a value.
var flags = []string{"maybe", "unordered", "strict", "split", "closes", "anyzxid"}

// arguments are the words after an operation, sorted by kind.
type arguments struct {
	fields  map[string]string
	options map[string]string
	flags   []string
}

// sortOut assigns name=value words to fields and options, and the other words to
// the fields in wire order.
func sortOut(fields []field, words []string) (arguments, error) {
	a := arguments{fields: map[string]string{}, options: map[string]string{}}
	position := 0
	for _, word := range words {
		name, value, named := strings.Cut(word, "=")
		for position < len(fields) && fields[position].named {
			position++
		}
		isField := slices.ContainsFunc(fields, func(f field) bool { return f.name == name })
		switch {
		case named && isField:
			a.fields[name] = value
		case named && slices.Contains(options, name):
			a.options[name] = value
		case slices.Contains(flags, word):
			a.flags = append(a.flags, word)
		case position < len(fields):
			a.fields[fields[position].name] = word
			position++
		default:
			return a, fmt.Errorf("too many arguments: %s", word)
		}
	}
	return a, nil
}

// appendFields encodes the fields of an operation in wire order.
func (m marks) appendFields(e *encoder, o op, a arguments) error {
	if o.name == "op" { // here the body is the payload itself, not a buffer
		b, err := literal(a.fields["body"])
		e.raw(b)
		return err
	}
	for _, f := range o.fields {
		text, given := a.fields[f.name]
		if !given {
			text = f.def
		}
		if err := m.appendField(e, f.kind, text); err != nil {
			return fmt.Errorf("%s %s: %w", o.name, f.name, err)
		}
	}
	return nil
}

// request builds the request "OP arguments… [{ sub-operations }]".
func (m marks) request(l line, words []string, nextXid func() int32) (request, error) {
	o, ok := opNamed(words[0])
	if !ok {
		return request{}, fmt.Errorf("no operation %q", words[0])
	}
	a, err := sortOut(o.fields, words[1:])
	if err != nil {
		return request{}, err
	}
	r := request{op: o, flags: a.flags}
	code := o.code
	if text, ok := a.fields["code"]; ok && o.name == "op" {
		a.options["code"] = text
	}
	if text, ok := a.options["code"]; ok {
		n, err := m.number(text)
		if err != nil {
			return r, err
		}
		code = int32(n)
		r.op.reply, r.op.code = replyShape(code), code
	}
	if r.xid, err = m.xid(o, a, nextXid); err != nil {
		return r, err
	}
	var e encoder
	e.int(r.xid)
	e.int(code)
	if code == codePing {
		r.xid = xidPing // whatever xid the script asks for
	}
	if err := m.appendFields(&e, o, a); err != nil {
		return r, err
	}
	if o.reply == shapeMulti {
		if err := m.appendMulti(&e, l.block, a); err != nil {
			return r, err
		}
	}
	r.wire, err = m.damage(e.b, a)
	return r, err
}

func (m marks) xid(o op, a arguments, nextXid func() int32) (int32, error) {
	if text, ok := a.options["xid"]; ok {
		n, err := m.number(text)
		return int32(n), err
	}
	switch o.code {
	case codePing:
		return xidPing, nil
	case codeAuth:
		return xidAuth, nil
	}
	return nextXid(), nil
}

// damage frames the payload after the changes that the script asks for: bytes
// removed or added at the end, a false length.
func (m marks) damage(payload []byte, a arguments) ([]byte, error) {
	if text, ok := a.options["cut"]; ok {
		n, err := m.number(text)
		if err != nil || int(n) > len(payload) {
			return nil, fmt.Errorf("cut=%s of %d bytes", text, len(payload))
		}
		payload = payload[:len(payload)-int(n)]
	}
	if text, ok := a.options["trail"]; ok {
		b, err := hex.DecodeString(text)
		if err != nil {
			return nil, err
		}
		payload = append(payload, b...)
	}
	wire := framed(payload)
	if text, ok := a.options["len"]; ok {
		n, err := m.number(text)
		if err != nil {
			return nil, err
		}
		var e encoder
		e.int(int32(n))
		copy(wire, e.b)
	}
	return wire, nil
}

// appendMulti encodes the sub-operations, each after its header, and the end.
func (m marks) appendMulti(e *encoder, block []line, a arguments) error {
	for _, l := range block {
		o, ok := opNamed(l.words[0])
		if !ok {
			return fmt.Errorf("no operation %q in multi", l.words[0])
		}
		sub, err := sortOut(o.fields, l.words[1:])
		if err != nil {
			return err
		}
		code := fmt.Sprint(o.code)
		if o.name == "op" {
			code = sub.fields["code"]
		}
		header, ok := sub.options["hdr"]
		if !ok {
			header = code + ",0,-1"
		}
		if err := m.multiHeader(e, header); err != nil {
			return err
		}
		if err := m.appendFields(e, o, sub); err != nil {
			return err
		}
		if o.reply == shapeMulti {
			if err := m.appendMulti(e, l.block, sub); err != nil {
				return err
			}
		}
	}
	end, ok := a.options["end"]
	if !ok {
		end = "-1,1,-1"
	}
	if end == "none" {
		return nil
	}
	return m.multiHeader(e, end)
}

// multiHeader encodes "type,done,err".
func (m marks) multiHeader(e *encoder, text string) error {
	parts := strings.Split(text, ",")
	if len(parts) != 3 {
		return fmt.Errorf("no multi header type,done,err: %s", text)
	}
	for i, k := range []kind{kindInt, kindByte, kindInt} {
		if err := m.appendField(e, k, parts[i]); err != nil {
			return err
		}
	}
	return nil
}
