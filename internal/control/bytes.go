package control

import (
	"unicode/utf8"
)

// content is a znode's data: text if it's valid UTF-8, base64 otherwise.
type content struct {
	Data   *string `json:"data,omitempty"`
	Base64 []byte  `json:"base64,omitempty"` // encoding/json encodes []byte as base64
}

// contentOf returns the JSON form of data.
func contentOf(data string) content {
	if utf8.ValidString(data) {
		return content{Data: &data}
	}
	return content{Base64: []byte(data)}
}

// read returns the data that the caller sent; a missing field means empty data.
func (c *content) read() (string, error) {
	switch {
	case c.Data != nil && c.Base64 != nil:
		return "", bad("data and base64 are mutually exclusive")
	case c.Data != nil:
		return *c.Data, nil
	}
	return string(c.Base64), nil
}
