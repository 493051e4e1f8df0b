package zktest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/zkgo/zkgo/internal/smallfile"
)

// SeedJSON is Seed for a tree in JSON. An object is a znode and its members are the znode's
// children. A string is the data of a znode without children; the member with the empty name
// is the data of a znode with children. A name may be a whole path.
//
//	{"app": {"": "of /app itself", "config": "v1", "locks": {}}, "/jobs/1": "todo"}
//
// Numbers, true and false are stored as written; null means no data.
func (s *Server) SeedJSON(text string) {
	s.t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var tree any
	err := d.Decode(&tree)
	if err == nil {
		if _, more := d.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("unexpected data after the end")
		}
	}
	s.seedTree("SeedJSON", tree, err)
}

// SeedYAML is SeedJSON for the same structure in YAML.
func (s *Server) SeedYAML(text string) {
	s.t.Helper()
	var root yaml.Node
	err := yaml.Unmarshal([]byte(text), &root)
	tree := any(nil)
	if err == nil {
		tree, err = yamlTree(&root)
	}
	s.seedTree("SeedYAML", tree, err)
}

// SeedText is Seed for a tree in the format of Dump. We skip ephemeral znodes, because they
// need a session.
func (s *Server) SeedText(dump string) {
	s.t.Helper()
	nodes, err := parseDump(dump)
	if err != nil {
		s.fatalf("SeedText: %v", err)
	}
	s.Seed(nodes)
}

// SeedFile calls SeedJSON, SeedYAML or SeedText with the contents of a file. The
// extension selects the format: .json, .yaml or .yml, and Dump's format for any
// other.
func (s *Server) SeedFile(name string) {
	s.t.Helper()
	b, err := smallfile.Read(name)
	if err != nil {
		s.fatalf("SeedFile: %v", err)
	}
	switch filepath.Ext(name) {
	case ".json":
		s.SeedJSON(string(b))
	case ".yaml", ".yml":
		s.SeedYAML(string(b))
	default:
		s.SeedText(string(b))
	}
}

func (s *Server) seedTree(method string, tree any, err error) {
	s.t.Helper()
	nodes := make(map[string]string)
	if err == nil {
		err = flatten(nodes, "", tree)
	}
	if err != nil {
		s.fatalf("%s: %v", method, err)
	}
	s.Seed(nodes)
}

// flatten adds the znodes of a tree at path to nodes.
func flatten(nodes map[string]string, path string, tree any) error {
	name := path
	if path == "" {
		name = "/"
	}
	switch v := tree.(type) {
	case map[string]any:
		own, has := v[""]
		if has || len(v) == 0 && path != "" {
			if _, nested := own.(map[string]any); nested {
				return fmt.Errorf("%s: its data is an object", name)
			}
			if err := flatten(nodes, path, own); err != nil {
				return err
			}
		}
		for key, below := range v {
			if key == "" {
				continue
			}
			if err := flatten(nodes, path+"/"+strings.Trim(key, "/"), below); err != nil {
				return err
			}
		}
	case string:
		nodes[name] = v
	case json.Number:
		nodes[name] = v.String()
	case bool:
		nodes[name] = strconv.FormatBool(v)
	case nil:
		nodes[name] = ""
	default:
		return fmt.Errorf("%s: a list is not a znode", name)
	}
	return nil
}

// yamlTree converts YAML to the input of flatten. We keep all scalars as written: data that
// looks like a number or a date stays text.
func yamlTree(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.DocumentNode:
		return yamlTree(n.Content[0])
	case yaml.AliasNode:
		return yamlTree(n.Alias)
	case yaml.MappingNode:
		tree := make(map[string]any)
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode || key.Tag == "!!merge" {
				return nil, fmt.Errorf("line %d: a key that is not a name", key.Line)
			}
			below, err := yamlTree(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			if _, twice := tree[key.Value]; twice {
				return nil, fmt.Errorf("line %d: duplicate %q", key.Line, key.Value)
			}
			tree[key.Value] = below
		}
		return tree, nil
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return nil, nil
		}
		return n.Value, nil
	case yaml.SequenceNode:
		return nil, fmt.Errorf("line %d: a list is not a znode", n.Line)
	}
	return map[string]any{}, nil // an empty document
}

// parseDump parses the output of Dump.
func parseDump(dump string) (map[string]string, error) {
	nodes := make(map[string]string)
	var names []string
	for i, line := range strings.Split(strings.TrimRight(dump, "\n"), "\n") {
		text := strings.TrimLeft(line, " ")
		depth := (len(line) - len(text)) / 2
		if text == "" || i == 0 && text == "/" {
			continue
		}
		name, data, rest, err := parseLine(text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("line %d, %q: %w", i+1, line, err)
		case i == 0 && name == "/":
			nodes["/"] = data
			continue
		case depth < 1 || depth > len(names)+1 || len(line)-len(text) != 2*depth:
			return nil, fmt.Errorf("line %d, %q: want two spaces more than its parent", i+1, line)
		}
		names = append(names[:depth-1], name)
		if !strings.HasPrefix(rest, " (ephemeral of ") {
			nodes["/"+strings.Join(names, "/")] = data
		}
	}
	return nodes, nil
}

// parseLine parses one znode: its name, optionally " = " and quoted data, and the
// rest of the line.
func parseLine(text string) (name, data, rest string, err error) {
	name, rest, has := strings.Cut(text, " = ")
	if !has || strings.Contains(name, " (ephemeral of ") {
		if at := strings.Index(text, " (ephemeral of "); at >= 0 {
			return text[:at], "", text[at:], nil
		}
		return text, "", "", nil
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return "", "", "", errors.New("want quoted text after =")
	}
	rest = rest[len(quoted):]
	if data, err = strconv.Unquote(quoted); err == nil && rest != "" && !strings.HasPrefix(rest, " (ephemeral of ") {
		err = fmt.Errorf("unexpected %q", rest)
	}
	return name, data, rest, err
}
