package subtree

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// byteOrderMark is a mark that some editors write at the start of a UTF-8 file.
const byteOrderMark = "\ufeff"

// detect determines the format from the first non-blank character. It skips a byte
// order mark.
func detect(r io.Reader) (*bufio.Reader, Format, error) {
	b := bufio.NewReaderSize(r, 64<<10)
	if head, err := b.Peek(len(byteOrderMark)); err == nil && string(head) == byteOrderMark {
		if _, err := b.Discard(len(head)); err != nil {
			return nil, "", err
		}
	}
	for {
		c, err := b.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil, "", errors.New("the file is empty")
		case err != nil:
			return nil, "", err
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		case c == '{':
			return b, JSON, b.UnreadByte()
		}
		return b, YAML, b.UnreadByte()
	}
}

// scanJSON reads one document with the header before the znodes.
func scanJSON(r io.Reader, each func(*record) error) (header, error) {
	s := &jsonScanner{d: json.NewDecoder(r), each: each}
	s.d.DisallowUnknownFields()
	err := s.document()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("the file is cut off after %d znodes", s.n)
	}
	if err != nil {
		return header{}, fmt.Errorf("byte %d: %w", s.d.InputOffset(), err)
	}
	return s.head, nil
}

type jsonScanner struct {
	d     *json.Decoder
	each  func(*record) error
	head  header
	n     int
	count *int
	list  bool
}

func (s *jsonScanner) document() error {
	if err := s.delim('{'); err != nil {
		return err
	}
	for s.d.More() {
		key, err := s.d.Token()
		if err != nil {
			return err
		}
		switch key {
		case "format":
			err = s.d.Decode(&s.head.Format)
		case "version":
			err = s.d.Decode(&s.head.Version)
		case "root":
			err = s.d.Decode(&s.head.Root)
		case "count":
			err = s.d.Decode(&s.count)
		case "znodes":
			err = s.znodes()
		default:
			err = fmt.Errorf("unknown field %q", key)
		}
		if err != nil {
			return err
		}
	}
	if err := s.delim('}'); err != nil {
		return err
	}
	if _, err := s.d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected data after the end")
	}
	if !s.list {
		return s.head.check()
	}
	if s.count != nil && *s.count != s.n {
		return fmt.Errorf("got %d znodes, want %d", s.n, *s.count)
	}
	return nil
}

func (s *jsonScanner) znodes() error {
	if err := s.head.check(); err != nil {
		return err
	}
	if s.list {
		return errors.New(`duplicate "znodes"`)
	}
	s.list = true
	if err := s.delim('['); err != nil {
		return err
	}
	for s.d.More() {
		var r record
		if err := s.d.Decode(&r); err != nil {
			return err
		}
		s.n++
		if err := s.each(&r); err != nil {
			return err
		}
	}
	return s.delim(']')
}

func (s *jsonScanner) delim(want json.Delim) error {
	t, err := s.d.Token()
	if err == nil && t != want {
		err = fmt.Errorf("got %v, want %q", t, want.String())
	}
	return err
}

// scanYAML reads a stream of documents: the header, the znodes, the trailer.
func scanYAML(r io.Reader, each func(*record) error) (header, error) {
	d := yaml.NewDecoder(r)
	d.KnownFields(true)
	var head header
	if err := d.Decode(&head); err != nil {
		return head, fmt.Errorf("the first document: %w", err)
	}
	if err := head.check(); err != nil {
		return head, err
	}
	n := 0
	var count *int
	for {
		var doc struct {
			record  `yaml:",inline"`
			trailer `yaml:",inline"`
		}
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		switch {
		case err != nil && strings.Contains(err.Error(), "unexpected end of stream"): // inside a quoted text
			return head, fmt.Errorf("the file is cut off after %d znodes: %w", n, err)
		case err != nil:
			return head, fmt.Errorf("document %d: %w", n+2, err)
		case count != nil:
			return head, errors.New("unexpected data after the trailer")
		case doc.Count != nil:
			count = doc.Count
			continue
		}
		n++
		if err := each(&doc.record); err != nil {
			return head, err
		}
	}
	switch {
	case head.Trailer && count == nil:
		return head, fmt.Errorf("the file is cut off after %d znodes: its trailer is missing", n)
	case count != nil && *count != n:
		return head, fmt.Errorf("got %d znodes, want %d", n, *count)
	}
	return head, nil
}
