package control

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/server/zktest"
)

// node is the JSON form of a znode.
type node struct {
	Path string `json:"path"`
	content
	Children []string `json:"children"`
	Stat     stat     `json:"stat"`
}

// stat is ZooKeeper's Stat with its field names.
type stat struct {
	Czxid          int64     `json:"czxid"`
	Mzxid          int64     `json:"mzxid"`
	Ctime          int64     `json:"ctime"`
	Mtime          int64     `json:"mtime"`
	Version        int32     `json:"version"`
	Cversion       int32     `json:"cversion"`
	Aversion       int32     `json:"aversion"`
	EphemeralOwner sessionID `json:"ephemeralOwner"`
	DataLength     int32     `json:"dataLength"`
	NumChildren    int32     `json:"numChildren"`
	Pzxid          int64     `json:"pzxid"`
}

func statOf(s proto.Stat) stat {
	return stat{
		Czxid: s.Czxid, Mzxid: s.Mzxid, Ctime: s.Ctime, Mtime: s.Mtime, Version: s.Version, Cversion: s.Cversion, Aversion: s.Aversion,
		EphemeralOwner: sessionID(s.EphemeralOwner), DataLength: s.DataLength, NumChildren: s.NumChildren, Pzxid: s.Pzxid,
	}
}

// existing returns the server to inspect and the path parameter, which must exist.
func (c *call) existing() (*zktest.Server, string, error) {
	path, err := c.path()
	if err != nil {
		return nil, "", err
	}
	s, err := c.one()
	if err == nil && !s.Exists(path) {
		err = missing("there is no znode %s", path)
	}
	return s, path, err
}

func getNode(c *call) (any, error) {
	s, path, err := c.existing()
	if err != nil {
		return nil, err
	}
	return node{path, contentOf(s.Get(path)), orEmpty(s.Children(path)), statOf(s.Stat(path))}, nil
}

func getChildren(c *call) (any, error) {
	s, path, err := c.existing()
	if err != nil {
		return nil, err
	}
	return map[string]any{"path": path, "children": orEmpty(s.Children(path))}, nil
}

// orEmpty keeps an empty list from being written as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func getExists(c *call) (any, error) {
	path, err := c.path()
	if err != nil {
		return nil, err
	}
	s, err := c.one()
	if err != nil {
		return nil, err
	}
	return map[string]any{"path": path, "exists": s.Exists(path)}, nil
}

func putNode(c *call) (any, error) {
	var in struct {
		Path string `json:"path"`
		content
	}
	if err := c.body(&in); err != nil {
		return nil, err
	}
	if err := checkPath("path", in.Path); err != nil {
		return nil, err
	}
	data, err := in.read()
	if err != nil {
		return nil, err
	}
	return c.seed(map[string]string{in.Path: data})
}

func deleteNode(c *call) (any, error) {
	path, err := c.path()
	if err != nil {
		return nil, err
	}
	s, err := c.one()
	if err != nil {
		return nil, err
	}
	s.Delete(path)
	return none{}, nil
}

// postSeed accepts znodes in one of four forms.
func postSeed(c *call) (any, error) {
	var in struct {
		Nodes map[string]json.RawMessage `json:"nodes"`
		Tree  json.RawMessage            `json:"tree"`
		YAML  string                     `json:"yaml"`
		Dump  string                     `json:"dump"`
	}
	if err := c.body(&in); err != nil {
		return nil, err
	}
	given := 0
	for _, is := range []bool{len(in.Nodes) > 0, len(in.Tree) > 0, in.YAML != "", in.Dump != ""} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, bad("%d of nodes, tree, yaml and dump are given: want one", given)
	}
	if len(in.Nodes) > 0 {
		nodes, err := nodesOf(in.Nodes)
		if err != nil {
			return nil, err
		}
		return c.seed(nodes)
	}
	s, err := c.one()
	if err != nil {
		return nil, err
	}
	err = try(func() {
		switch {
		case in.YAML != "":
			s.SeedYAML(in.YAML)
		case in.Dump != "":
			s.SeedText(in.Dump)
		default:
			s.SeedJSON(string(in.Tree))
		}
	})
	if err != nil { // the text itself is invalid
		return nil, bad("%v", err)
	}
	return none{}, nil
}

// nodesOf decodes a map of paths to text, or to an object with data or base64.
func nodesOf(raw map[string]json.RawMessage) (map[string]string, error) {
	nodes := make(map[string]string)
	for _, path := range slices.Sorted(maps.Keys(raw)) {
		if err := checkPath("nodes", path); err != nil {
			return nil, err
		}
		var text string
		var either content
		err := json.Unmarshal(raw[path], &text)
		if d := json.NewDecoder(bytes.NewReader(raw[path])); err != nil {
			d.DisallowUnknownFields()
			if err = d.Decode(&either); err == nil {
				text, err = either.read()
			}
		}
		if err != nil {
			return nil, bad("nodes %s: %s is neither text nor {\"base64\": …}", path, raw[path])
		}
		nodes[path] = text
	}
	return nodes, nil
}

// seed writes the znodes.
func (c *call) seed(nodes map[string]string) (any, error) {
	s, err := c.one()
	if err != nil {
		return nil, err
	}
	s.Seed(nodes)
	return none{}, nil
}

func getDump(c *call) (any, error) {
	s, err := c.one()
	if err != nil {
		return nil, err
	}
	return map[string]string{"dump": s.Dump()}, nil
}
