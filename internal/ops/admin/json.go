package admin

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// object is a JSON object that keeps the order of its fields.
type object []field

type field struct {
	name  string
	value any // nil, bool, string, json.Number, an integer, []string, []int64, object or []object
}

// with appends a field.
func (o object) with(name string, value any) object { return append(o, field{name, value}) }

// encode writes o to w, piece by piece. It formats o as Jackson's pretty printer does,
// because some tools search the text for "name" : value.
func (o object) encode(w io.Writer) error {
	b := bufio.NewWriterSize(w, 32<<10)
	o.print(b, 0)
	return b.Flush()
}

func (o object) print(b *bufio.Writer, depth int) {
	if len(o) == 0 {
		b.WriteString("{ }")
		return
	}
	indent := strings.Repeat("  ", depth+1)
	for i, f := range o {
		if i == 0 {
			b.WriteString("{\n")
		} else {
			b.WriteString(",\n")
		}
		b.WriteString(indent)
		text(b, f.name)
		b.WriteString(" : ")
		printValue(b, f.value, depth+1)
	}
	b.WriteByte('\n')
	b.WriteString(indent[2:])
	b.WriteByte('}')
}

func printValue(b *bufio.Writer, v any, depth int) {
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case object:
		v.print(b, depth)
	case []object:
		list(b, v, func(o object) { o.print(b, depth) })
	case []string:
		list(b, v, func(s string) { text(b, s) })
	case []int64:
		list(b, v, func(n int64) { b.WriteString(strconv.FormatInt(n, 10)) })
	case string:
		text(b, v)
	default:
		fmt.Fprint(b, v)
	}
}

func list[T any](b *bufio.Writer, items []T, print func(T)) {
	b.WriteString("[ ")
	for i, item := range items {
		if i > 0 {
			b.WriteString(", ")
		}
		print(item)
	}
	if len(items) > 0 {
		b.WriteByte(' ')
	}
	b.WriteByte(']')
}

// text prints a string with arbitrary bytes as a JSON string.
func text(b *bufio.Writer, s string) {
	var quoted bytes.Buffer
	enc := json.NewEncoder(&quoted)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // encoding a string can't fail
	b.Write(quoted.Bytes()[:quoted.Len()-1])
}
