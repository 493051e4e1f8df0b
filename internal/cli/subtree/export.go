package subtree

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Format is a file format.
type Format string

// The formats.
const (
	JSON Format = "json"
	YAML Format = "yaml"
)

// ExportOptions are the options of Export.
type ExportOptions struct {
	Format Format
	// Root is the subtree's path, for readers of the file.
	Root string
	// Stat adds zxids, times and versions. Imports ignore them.
	Stat bool
	// NoACL omits ACLs.
	NoACL bool
	// Wrote, if set, is called for every znode.
	Wrote func(*Node)
}

// Export writes a subtree to w while reading it, and returns the number of znodes. If
// it fails, the output is incomplete, and imports reject it.
//
// JSON output is one document with one line per znode. YAML output is a stream of
// documents: the header, the znodes, and a trailer with their number, so that we notice a
// truncated file.
func Export(ctx context.Context, w io.Writer, src Source, o ExportOptions) (int, error) {
	buffered := bufio.NewWriterSize(w, 64<<10)
	var f writer
	head := header{Format: formatName, Version: formatVersion, Root: text(o.Root)}
	switch o.Format {
	case JSON:
		f = &jsonWriter{w: buffered, head: head}
	case YAML:
		head.Trailer = true
		f = &yamlWriter{w: buffered, e: yaml.NewEncoder(buffered), head: head}
	default:
		return 0, fmt.Errorf("format %q: want json or yaml", o.Format)
	}
	n := 0
	if err := f.begin(); err != nil {
		return n, err
	}
	for node, err := range src(ctx) {
		if err == nil {
			err = exportable(node, o)
		}
		if err != nil {
			return n, err
		}
		if o.NoACL {
			open := *node
			open.ACL = nil
			node = &open
		}
		if err := f.node(node, o.Stat); err != nil {
			return n, err
		}
		n++
		if o.Wrote != nil {
			o.Wrote(node)
		}
	}
	if err := f.end(n); err != nil {
		return n, err
	}
	return n, buffered.Flush()
}

func exportable(n *Node, o ExportOptions) error {
	switch {
	case n.Err != nil:
		return n.Err
	case !o.NoACL && blanked(n.ACL):
		return fmt.Errorf("%s: %w", Join(o.Root, n.Path), ErrHiddenACL)
	}
	return nil
}

// writer writes one of the formats.
type writer interface {
	begin() error
	node(n *Node, stat bool) error
	end(count int) error
}

type jsonWriter struct {
	w    *bufio.Writer
	head header
	some bool
}

func (f *jsonWriter) begin() error {
	head, err := json.Marshal(&f.head)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f.w, "%s,\"znodes\":[\n", head[:len(head)-1])
	return err
}

func (f *jsonWriter) node(n *Node, stat bool) error {
	if f.some {
		if _, err := f.w.WriteString(","); err != nil {
			return err
		}
	}
	f.some = true
	e := json.NewEncoder(f.w)
	e.SetEscapeHTML(false)
	return e.Encode(newRecord(n, stat, func(string) bool { return true }))
}

func (f *jsonWriter) end(count int) error {
	_, err := fmt.Fprintf(f.w, "],\"count\":%d}\n", count)
	return err
}

// trailer is the last document of a YAML file.
type trailer struct {
	Count *int `yaml:"count"`
}

type yamlWriter struct {
	w    *bufio.Writer
	e    *yaml.Encoder
	head header
}

func (f *yamlWriter) begin() error { return f.e.Encode(&f.head) }

func (f *yamlWriter) node(n *Node, stat bool) error {
	r := newRecord(n, stat, yamlKeeps)
	return f.e.Encode(&r)
}

func (f *yamlWriter) end(count int) error {
	if err := f.e.Encode(&trailer{Count: &count}); err != nil {
		return err
	}
	return f.e.Close()
}
