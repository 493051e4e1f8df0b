package proto

import (
	"encoding/binary"
	"reflect"
	"strconv"
)

// This file has a second codec, small and slow, that we compare ours with. It encodes and
// decodes any structure by reflection, field by field.

// encode appends the encoding of v.
func encode(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Int32:
		return binary.BigEndian.AppendUint32(b, uint32(v.Int()))
	case reflect.Int64:
		return binary.BigEndian.AppendUint64(b, uint64(v.Int()))
	case reflect.String:
		if v.String() == NullString {
			return append(b, 255, 255, 255, 255)
		}
		return append(binary.BigEndian.AppendUint32(b, uint32(v.Len())), v.String()...)
	case reflect.Slice:
		if v.IsNil() {
			return append(b, 255, 255, 255, 255)
		}
		b = binary.BigEndian.AppendUint32(b, uint32(v.Len()))
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return append(b, v.Bytes()...)
		}
		for i := range v.Len() {
			b = encode(b, v.Index(i))
		}
		return b
	}
	for _, f := range wireFields(v.Type()) {
		b = encode(b, v.FieldByIndex(f.Index))
	}
	return b
}

// decode reads v from b and returns the rest; false if b is too short. It reads
// only what encode writes.
func decode(b []byte, v reflect.Value) (rest []byte, ok bool) {
	size := map[reflect.Kind]int{reflect.Bool: 1, reflect.Int32: 4, reflect.Int64: 8, reflect.String: 4, reflect.Slice: 4}[v.Kind()]
	if len(b) < size {
		return nil, false
	}
	n := int32(0)
	if size == 4 {
		n = int32(binary.BigEndian.Uint32(b))
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(b[0] != 0)
	case reflect.Int32:
		v.SetInt(int64(n))
	case reflect.Int64:
		v.SetInt(int64(binary.BigEndian.Uint64(b)))
	case reflect.String:
		if n < 0 {
			v.SetString(NullString)
			break
		}
		if len(b) < 4+int(n) {
			return nil, false
		}
		v.SetString(string(b[4 : 4+n]))
		size += int(n)
	case reflect.Slice:
		if n < 0 {
			v.SetZero()
			break
		}
		if len(b) < 4+int(n) {
			return nil, false
		}
		v.Set(reflect.MakeSlice(v.Type(), int(n), int(n)))
		b = b[4:]
		for i := range int(n) {
			if v.Index(i).Kind() == reflect.Uint8 {
				v.Index(i).SetUint(uint64(b[0]))
				b = b[1:]
			} else if b, ok = decode(b, v.Index(i)); !ok {
				return nil, false
			}
		}
		return b, true
	default:
		for _, f := range wireFields(v.Type()) {
			if b, ok = decode(b, v.FieldByIndex(f.Index)); !ok {
				return nil, false
			}
		}
		return b, true
	}
	return b[size:], true
}

// filler gives every field a distinct value, as did the program that wrote the
// golden file with ZooKeeper's classes.
type filler struct {
	n    int64
	mode string // full, null or empty
}

func (f *filler) fill(v reflect.Value) {
	f.n++
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32:
		v.SetInt(f.n)
	case reflect.Int64:
		v.SetInt(f.n * 0x100000001)
	case reflect.String:
		v.SetString(map[string]string{"full": "s" + strconv.FormatInt(f.n, 10) + "é€", "null": NullString}[f.mode])
	case reflect.Slice:
		buffer := v.Type().Elem().Kind() == reflect.Uint8
		switch {
		case f.mode == "empty":
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		case f.mode == "full" && buffer:
			v.SetBytes([]byte{byte(f.n), 0xff, 0})
		case f.mode == "full":
			v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		}
		if !buffer {
			f.n--
			for i := range v.Len() {
				f.fill(v.Index(i))
			}
		}
	case reflect.Struct:
		f.n--
		for _, field := range wireFields(v.Type()) {
			f.fill(v.FieldByIndex(field.Index))
		}
		if has := v.FieldByName("HasReadOnly"); has.IsValid() {
			has.SetBool(true)
		}
	}
}
