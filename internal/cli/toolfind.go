package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/zkgo/zkgo/internal/cli/subtree"
	"github.com/zkgo/zkgo/proto"
)

func findCommand() Command {
	return Command{
		Name:        "find",
		Verb:        "find [path...]",
		Usage:       "[-name glob] [-regex re] [-data text] [...] [path...]",
		Short:       "find znodes below paths that match all conditions",
		ListOptions: true,
		Options: []Option{
			{Name: "name", Arg: "glob", Help: "name matches a pattern, e.g. *.json or lock-?"},
			{Name: "regex", Arg: "re", Help: "path matches a regular expression"},
			{Name: "data", Arg: "text", Help: "data contains a text"},
			{Name: "ephemeral", Help: "ephemeral znodes", Group: "kind"},
			{Name: "persistent", Help: "znodes that are not ephemeral", Group: "kind"},
			{Name: "owner", Arg: "session", Help: "ephemeral znodes of this session"},
			{Name: "larger", Arg: "bytes", Help: "data has more bytes than this"},
			{Name: "smaller", Arg: "bytes", Help: "data has fewer bytes than this"},
			{Name: "newer", Arg: "age", Help: "written since then: a duration, e.g. 2h30m, or a time, e.g. 2026-01-31T12:00:00Z"},
			{Name: "older", Arg: "age", Help: "not written since then"},
			{Name: "leaf", Help: "znodes without children"},
			{Name: "children", Arg: "n", Help: "znodes with at least n children"},
			{Name: "acl", Arg: "text", Help: "an ACL entry contains a text, e.g. world:anyone:cdrwa"},
			{Name: "depth", Arg: "n", Help: "levels below the path"},
			{Name: "a", Long: "all", Help: "include ZooKeeper's own znodes"},
			{Name: "l", Long: "long", Help: "show size, version and time of the last write"},
			{Name: "count", Help: "print only the number of znodes"},
		},
		Most: Any,
		Run:  runFind,
	}
}

// mostUnreadable limits the number of unreadable znodes that are listed.
const mostUnreadable = 20

// condition reports whether a znode matches.
type condition func(path string, n *subtree.Node) bool

func runFind(ctx context.Context, c *Call) error { return c.each(ctx, "/", finder{c}.find) }

// finder is a call of find.
type finder struct{ *Call }

// find searches one place.
func (c finder) find(ctx context.Context, arg string) error {
	conditions, err := c.conditions(time.Now())
	if err != nil {
		return err
	}
	depth, err := c.whole("depth", 1)
	if err != nil {
		return err
	}
	p, done, err := c.place(ctx, arg)
	if err != nil {
		return err
	}
	defer done()
	o := subtree.WalkOptions{Depth: int(depth), NoData: !c.Has("data"), NoACL: !c.Has("acl"), System: c.Has("a")}
	found := 0
	var unreadable []string
	for n, err := range subtree.Walk(p.Client, p.Root, o)(ctx) {
		if err != nil {
			return err
		}
		full := subtree.Join(p.Root, n.Path)
		if n.Err != nil {
			unreadable = append(unreadable, full)
		}
		if !allHold(conditions, full, n) {
			continue
		}
		if found++; c.Has("count") {
			continue
		}
		if err := c.Emit(newInfo(full, n, c.Has("data")), func(w io.Writer) { fmt.Fprintln(w, full+c.foundRemarks(n)) }); err != nil {
			return err
		}
	}
	for i, path := range unreadable {
		if i == mostUnreadable {
			fmt.Fprintf(c.Err, "and %s more\n", plural(len(unreadable)-i, "znode"))
			break
		}
		fmt.Fprintf(c.Err, "%s: cannot read its children: authenticate with addauth or --auth\n", path)
	}
	if c.Has("count") {
		return c.Emit(map[string]any{"path": arg, "count": found}, func(w io.Writer) { fmt.Fprintln(w, found) })
	}
	return nil
}

// foundRemarks returns the details after the path of a match.
func (c finder) foundRemarks(n *subtree.Node) string {
	if !c.Has("l") {
		return ""
	}
	return c.remarks(&subtree.Node{Stat: n.Stat, Err: n.Err})
}

func allHold(conditions []condition, full string, n *subtree.Node) bool {
	for _, is := range conditions {
		if !is(full, n) {
			return false
		}
	}
	return true
}

// conditions parses the options.
func (c finder) conditions(now time.Time) ([]condition, error) {
	var list []condition
	add := func(is condition) { list = append(list, is) }
	if glob := c.Value("name"); c.Has("name") {
		if _, err := path.Match(glob, ""); err != nil {
			return nil, misuse("-name %s: %v", glob, err)
		}
		add(func(full string, _ *subtree.Node) bool { ok, _ := path.Match(glob, proto.Base(full)); return ok })
	}
	if c.Has("regex") {
		re, err := regexp.Compile(c.Value("regex"))
		if err != nil {
			return nil, misuse("-regex: %v", err)
		}
		add(func(full string, _ *subtree.Node) bool { return re.MatchString(full) })
	}
	if c.Has("data") {
		text := []byte(c.Value("data"))
		add(func(_ string, n *subtree.Node) bool { return n.Err == nil && bytes.Contains(n.Data, text) })
	}
	if c.Has("acl") {
		text := c.Value("acl")
		add(func(_ string, n *subtree.Node) bool { return aclContains(n, text) })
	}
	for _, kind := range []string{"ephemeral", "persistent"} {
		if c.Has(kind) {
			add(func(_ string, n *subtree.Node) bool { return n.Err == nil && n.Ephemeral() == (kind == "ephemeral") })
		}
	}
	if c.Has("leaf") {
		add(func(_ string, n *subtree.Node) bool { return n.Err == nil && n.Stat.NumChildren == 0 })
	}
	numbers, err := c.numberConditions()
	if err != nil {
		return nil, err
	}
	times, err := c.timeConditions(now)
	return append(append(list, numbers...), times...), err
}

func aclContains(n *subtree.Node, text string) bool {
	for _, a := range n.ACL {
		if strings.Contains(subtree.FormatACL(a), text) {
			return true
		}
	}
	return false
}

func (c finder) numberConditions() (list []condition, err error) {
	for option, is := range map[string]func(n *subtree.Node, v int64) bool{
		"larger":   func(n *subtree.Node, v int64) bool { return int64(n.Stat.DataLength) > v },
		"smaller":  func(n *subtree.Node, v int64) bool { return int64(n.Stat.DataLength) < v },
		"children": func(n *subtree.Node, v int64) bool { return int64(n.Stat.NumChildren) >= v },
	} {
		if !c.Has(option) {
			continue
		}
		v, err := c.whole(option, 0)
		if err != nil {
			return nil, err
		}
		list = append(list, func(_ string, n *subtree.Node) bool { return n.Err == nil && is(n, v) })
	}
	if s := c.Value("owner"); c.Has("owner") {
		owner, err := strconv.ParseUint(strings.TrimPrefix(s, "0x"), 16, 64)
		if err != nil {
			return nil, misuse("-owner %s: want a session id, a hexadecimal number", s)
		}
		list = append(list, func(_ string, n *subtree.Node) bool { return uint64(n.Stat.EphemeralOwner) == owner }) //nolint:gosec // all 64 bits are used
	}
	return list, nil
}

func (c finder) timeConditions(now time.Time) (list []condition, err error) {
	for _, option := range []string{"newer", "older"} {
		if !c.Has(option) {
			continue
		}
		at, err := pointInTime(c.Value(option), now)
		if err != nil {
			return nil, misuse("-%s %v", option, err)
		}
		list = append(list, func(_ string, n *subtree.Node) bool {
			return n.Err == nil && (n.Stat.Mtime >= at) == (option == "newer")
		})
	}
	return list, nil
}

// pointInTime parses a time or an age, and returns milliseconds since 1970.
func pointInTime(s string, now time.Time) (int64, error) {
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(-d).UnixMilli(), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UnixMilli(), nil
		}
	}
	return 0, fmt.Errorf("%s: want a duration, e.g. 2h30m, or a time, e.g. 2026-01-31T12:00:00Z", s)
}
