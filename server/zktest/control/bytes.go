package control

import (
	"unicode/utf8"
)

// content is what a znode holds: as text, or as base64 if it is no UTF-8.
type content struct {
	Data   *string `json:"data,omitempty"`
	Base64 []byte  `json:"base64,omitempty"` // which encoding/json writes and reads so
}

// contentOf is how data are shown.
func contentOf(data string) content {
	if utf8.ValidString(data) {
		return content{Data: &data}
	}
	return content{Base64: []byte(data)}
}

// read is what a caller gave; nothing is empty.
func (c *content) read() (string, error) {
	switch {
	case c.Data != nil && c.Base64 != nil:
		return "", bad("data and base64 are given: one of them")
	case c.Data != nil:
		return *c.Data, nil
	}
	return string(c.Base64), nil
}
