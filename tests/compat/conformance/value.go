package conformance

import (
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// marks are zxids that a script has named.
type marks map[string]int64

// number reads a decimal or hexadecimal number, or a mark "@m" or "@m+1".
func (m marks) number(text string) (int64, error) {
	name, marked := strings.CutPrefix(text, "@")
	if !marked {
		if n, err := strconv.ParseInt(text, 0, 64); err == nil {
			return n, nil
		}
		n, err := strconv.ParseUint(text, 0, 64) // 0xffff… as it appears on the wire
		return int64(n), err
	}
	offset := int64(0)
	if i := strings.IndexAny(name, "+-"); i >= 0 {
		n, err := strconv.ParseInt(name[i:], 10, 64)
		if err != nil {
			return 0, err
		}
		name, offset = name[:i], n
	}
	v, ok := m[name]
	if !ok {
		return 0, fmt.Errorf("no mark %q", name)
	}
	return v + offset, nil
}

// appendField encodes the text of a field.
func (m marks) appendField(e *encoder, k kind, text string) error {
	switch k {
	case kindString:
		return appendString(e, text)
	case kindACL:
		return appendACL(e, text)
	case kindStrings:
		return appendStrings(e, text)
	}
	n, err := m.number(text)
	switch {
	case err != nil:
	case k == kindLong:
		e.long(n)
	case k == kindInt && n >= math.MinInt32 && n <= math.MaxUint32:
		e.int(int32(n))
	case k == kindByte && n >= 0 && n <= math.MaxUint8:
		e.byte(byte(n))
	default:
		err = fmt.Errorf("%s does not fit", text)
	}
	return err
}

// appendString encodes a ustring or buffer. In addition to the strings of literal
// it accepts "null", and "len:N:text" for a false length.
func appendString(e *encoder, text string) error {
	if text == "null" {
		e.int(-1)
		return nil
	}
	if rest, ok := strings.CutPrefix(text, "len:"); ok {
		number, rest, _ := strings.Cut(rest, ":")
		n, err := strconv.ParseInt(number, 0, 32)
		if err != nil {
			return err
		}
		b, err := literal(rest)
		e.int(int32(n))
		e.raw(b)
		return err
	}
	b, err := literal(text)
	e.blob(b)
	return err
}

// literal reads "quoted" (Go syntax), hex:…, rep:N:literal or a bare word.
func literal(text string) ([]byte, error) {
	if strings.HasPrefix(text, `"`) {
		s, err := strconv.Unquote(text)
		if err != nil {
			err = fmt.Errorf("%s: %w", text, err)
		}
		return []byte(s), err
	}
	if rest, ok := strings.CutPrefix(text, "hex:"); ok {
		return hex.DecodeString(rest)
	}
	if rest, ok := strings.CutPrefix(text, "rep:"); ok {
		number, rest, _ := strings.Cut(rest, ":")
		n, err := strconv.Atoi(number)
		if err != nil {
			return nil, err
		}
		b, err := literal(rest)
		return []byte(strings.Repeat(string(b), n)), err
	}
	return []byte(text), nil
}

// list splits "[a,b]" into its elements. For "null" and "count:N" it returns only
// a count.
func list(text string) (elements []string, count int32, err error) {
	if text == "null" {
		return nil, -1, nil
	}
	if rest, ok := strings.CutPrefix(text, "count:"); ok {
		n, err := strconv.ParseInt(rest, 0, 32)
		return nil, int32(n), err
	}
	if !strings.HasPrefix(text, "[") || !strings.HasSuffix(text, "]") {
		return nil, 0, fmt.Errorf("no list: %s", text)
	}
	text = text[1 : len(text)-1]
	start, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ',' && !quoted:
			elements = append(elements, text[start:i])
			start = i + 1
		}
	}
	if len(elements) > 0 || text != "" {
		elements = append(elements, text[start:])
	}
	return elements, int32(len(elements)), nil
}

func appendStrings(e *encoder, text string) error {
	elements, count, err := list(text)
	if err != nil {
		return err
	}
	e.int(count)
	for _, s := range elements {
		if err := appendString(e, s); err != nil {
			return err
		}
	}
	return nil
}

// appendACL encodes "open" (world:anyone, everything), "null", or a list of
// perms:scheme:id in which "~" is a null scheme or id.
func appendACL(e *encoder, text string) error {
	if text == "open" {
		text = "[31:world:anyone]"
	}
	elements, count, err := list(text)
	if err != nil {
		return err
	}
	e.int(count)
	for _, entry := range elements {
		if strings.HasPrefix(entry, `"`) {
			if entry, err = strconv.Unquote(entry); err != nil {
				return err
			}
		}
		perms, rest, _ := strings.Cut(entry, ":")
		scheme, id, ok := strings.Cut(rest, ":")
		n, err := strconv.ParseInt(perms, 0, 64)
		if err != nil || !ok {
			return fmt.Errorf("no ACL entry perms:scheme:id: %q", entry)
		}
		e.int(int32(n))
		for _, s := range []string{scheme, id} {
			if s == "~" {
				e.int(-1)
			} else {
				e.blob([]byte(s))
			}
		}
	}
	return nil
}
