package tree

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zkgo/zkgo/proto"
)

// model is a second implementation of the tree, as simple as possible: a map from path
// to node and no other index. It finds children by checking every path, and executes
// a multi on a copy of everything.
type model struct {
	zxid  int64
	nodes map[string]*mnode
}

type mnode struct {
	czxid, mzxid, pzxid, ctime, mtime, owner int64
	version, cv, aversion                    int32
	data                                     []byte
	acl                                      []proto.ACL
}

// mresult is the model's result of a transaction.
type mresult struct {
	op     proto.Op
	code   proto.Code
	path   string
	stat   *proto.Stat
	multi  []mresult
	events []string
}

func newModel() *model {
	m := &model{nodes: map[string]*mnode{}}
	for _, p := range []string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"} {
		m.nodes[p] = &mnode{data: []byte{}, acl: []proto.ACL{{Perms: 31, ID: proto.ID{Scheme: "world", ID: "anyone"}}}}
	}
	m.nodes["/zookeeper/config"].acl = []proto.ACL{{Perms: 1, ID: proto.ID{Scheme: "world", ID: "anyone"}}}
	m.nodes["/zookeeper/config"].aversion = -1
	return m
}

func (m *model) clone() *model {
	c := &model{m.zxid, map[string]*mnode{}}
	for p, n := range m.nodes {
		cn := *n
		c.nodes[p] = &cn
	}
	return c
}

func (m *model) children(path string) (names []string) {
	prefix := strings.TrimSuffix(path, "/") + "/"
	for p := range m.nodes {
		if name, ok := strings.CutPrefix(p, prefix); ok && name != "" && !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (m *model) stat(path string) *proto.Stat {
	n, kids := m.nodes[path], int32(len(m.children(path)))
	s := &proto.Stat{Czxid: n.czxid, Mzxid: n.mzxid, Ctime: n.ctime, Mtime: n.mtime, Version: n.version,
		Cversion: n.cv*2 - kids, Aversion: n.aversion, DataLength: int32(len(n.data)), NumChildren: kids, Pzxid: n.pzxid}
	if top := uint64(n.owner) >> 56; top != 0xff && uint64(n.owner) != 1<<63 {
		s.EphemeralOwner = n.owner
	}
	return s
}

func (m *model) get(path string) (string, *mnode) {
	if path == "" {
		path = "/"
	}
	return path, m.nodes[path]
}

func (m *model) may(tx *Txn, n *mnode, perm proto.Perms) bool {
	if tx.Policy&SkipACL != 0 {
		return true
	}
	for _, id := range tx.IDs {
		if id.Scheme == "super" {
			return true
		}
	}
	for _, a := range n.acl {
		if a.Perms&perm == 0 {
			continue
		}
		for _, id := range append([]proto.ID{{Scheme: "world", ID: "anyone"}}, tx.IDs...) {
			if id == a.ID {
				return true
			}
		}
	}
	return false
}

// list supports only the lists that the generator makes.
func (m *model) list(tx *Txn, acl []proto.ACL) ([]proto.ACL, bool) {
	var out []proto.ACL
	for _, a := range acl {
		switch a.ID.Scheme {
		case "world", "digest":
			out = append(out, a)
		case "auth":
			found := false
			for _, id := range tx.IDs {
				if id.Scheme == "digest" {
					out = append(out, proto.ACL{Perms: a.Perms, ID: id})
					found = true
				}
			}
			if !found {
				return nil, false
			}
		default:
			return nil, false
		}
	}
	return out, len(out) > 0
}

// quotaFor returns the deepest path at or above path that has a limits node.
func (m *model) quotaFor(path string) string {
	for p := path; p != "/" && p != ""; p = proto.Parent(p) {
		if m.nodes["/zookeeper/quota"+p+"/zookeeper_limits"] != nil {
			return p
		}
	}
	return ""
}

func field(data []byte, key string) int64 {
	for _, pair := range strings.FieldsFunc(string(data), func(r rune) bool { return r == ',' || r == ';' }) {
		if f := strings.Split(pair, "="); len(f) > 1 && f[0] == key {
			if v, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				return v
			}
		}
	}
	return -1
}

// unreadable splits limits or usage as Java's split does, which drops empty parts only
// at the end.
func unreadable(data []byte) bool {
	text := strings.TrimRight(strings.ReplaceAll(string(data), ";", ","), ",")
	if text == "" {
		return data == nil
	}
	for i, pair := range strings.Split(text, ",") {
		if pair == "" && i > 0 {
			continue
		}
		kv := strings.Split(strings.TrimRight(pair, "="), "=")
		if len(kv) < 2 {
			return true
		}
		if _, err := strconv.ParseInt(kv[1], 10, 64); err != nil && kv[1] != "" {
			return true
		}
	}
	return false
}

func (m *model) quota(tx *Txn, before *model, path string, bytes, count int64) proto.Code {
	q := before.quotaFor(path)
	if q == "" || tx.Policy&EnforceQuota == 0 {
		return proto.Ok
	}
	limits, stats := before.nodes["/zookeeper/quota"+q+"/zookeeper_limits"], before.nodes["/zookeeper/quota"+q+"/zookeeper_stats"]
	if unreadable(limits.data) {
		return proto.ErrMarshalling
	}
	if stats == nil {
		return proto.Ok
	}
	code := proto.Ok
	for key, delta := range map[string]int64{"count": count, "bytes": bytes} {
		hard := field(limits.data, map[string]string{"count": "countHardLimit", "bytes": "byteHardLimit"}[key])
		if delta == 0 || hard < 0 && field(limits.data, key) < 0 {
			continue
		}
		if unreadable(stats.data) {
			return proto.ErrMarshalling
		}
		if hard >= 0 && field(stats.data, key)+delta > hard {
			code = proto.ErrQuotaExceeded
		}
	}
	return code
}

func (m *model) charge(path string, bytes, count int64) {
	if q := m.quotaFor(path); q != "" {
		if s := m.nodes["/zookeeper/quota"+q+"/zookeeper_stats"]; s != nil {
			s.data = fmt.Appendf(nil, "count=%d,bytes=%d", field(s.data, "count")+count, field(s.data, "bytes")+bytes)
		}
	}
}

// apply executes a transaction.
func (m *model) apply(tx *Txn, op proto.Op, req proto.Record) mresult {
	defer func() { m.zxid = tx.Zxid }()
	multi, ok := req.(*proto.MultiRequest)
	if !ok {
		r := m.one(tx, m, op, req)
		r.op = op
		return r
	}
	before := m.clone()
	r := mresult{op: op}
	for i, o := range multi.Ops {
		part := m.one(tx, before, o.Op, o.Req)
		part.op = map[proto.Op]proto.Op{proto.OpCreateContainer: proto.OpCreate2, proto.OpCreateTTL: proto.OpCreate2}[o.Op]
		if part.op == 0 {
			part.op = o.Op
		}
		r.events = append(r.events, part.events...)
		part.events = nil
		r.multi = append(r.multi, part)
		if part.code == proto.Ok {
			continue
		}
		m.nodes = before.nodes
		r = mresult{op: op}
		if part.code == proto.ErrMarshalling {
			r.code = part.code
			break
		}
		for k := range multi.Ops {
			code := proto.Ok
			if k == i {
				code = part.code
			} else if k > i {
				code = proto.ErrRuntimeInconsistency
			}
			r.multi = append(r.multi, mresult{op: proto.OpError, code: code})
		}
		break
	}
	return r
}

func (m *model) one(tx *Txn, before *model, op proto.Op, req proto.Record) mresult {
	switch q := req.(type) {
	case *proto.CreateRequest:
		return m.create(tx, before, op, *q, -1)
	case *proto.CreateTTLRequest:
		return m.create(tx, before, op, proto.CreateRequest{Path: q.Path, Data: q.Data, ACL: q.ACL, Flags: q.Flags}, q.TTL)
	case *proto.VersionRecord:
		if op == proto.OpCheck {
			return mresult{code: m.find(tx, q.Path, 1, func(n *mnode) int32 { return n.version }, q.Version)}
		}
		return m.delete(tx, q.Path, q.Version)
	case *proto.SetDataRequest:
		return m.set(tx, before, q)
	case *proto.SetACLRequest:
		return m.setACL(tx, q)
	case *Reap:
		return m.reap(tx, q)
	case nil:
		var r mresult
		for _, p := range slices.Sorted(maps.Keys(m.nodes)) {
			if m.nodes[p].owner == tx.Session && tx.Session != 0 {
				r.events = append(r.events, m.drop(tx, p)...)
			}
		}
		return r
	}
	panic(fmt.Sprintf("the model knows no %T", req))
}

func (m *model) create(tx *Txn, before *model, op proto.Op, q proto.CreateRequest, ttl int64) mresult {
	mode := proto.CreateMode(q.Flags)
	timed := mode == proto.ModePersistentTTL || mode == proto.ModePersistentSequentialTTL
	switch {
	case q.Flags < 0 || q.Flags > 6:
		return mresult{code: proto.ErrBadArguments}
	case timed && tx.Policy&ExtendedTypes == 0:
		return mresult{code: proto.ErrUnimplemented}
	case timed && (ttl < 1 || ttl > proto.MaxTTL) || !timed && (ttl != -1 || op == proto.OpCreateTTL):
		return mresult{code: proto.ErrBadArguments}
	}
	i := strings.LastIndex(q.Path, "/")
	if i < 0 {
		return mresult{code: proto.ErrBadArguments}
	}
	acl, ok := m.list(tx, q.ACL)
	if !ok {
		return mresult{code: proto.ErrInvalidACL}
	}
	above, parent := m.get(q.Path[:i])
	if parent == nil {
		return mresult{code: proto.ErrNoNode}
	}
	if !m.may(tx, parent, proto.PermCreate) {
		return mresult{code: proto.ErrNoAuth}
	}
	path := q.Path
	if mode.Sequential() {
		path += fmt.Sprintf("%010d", parent.cv)
	}
	switch {
	case proto.ValidatePath(path) != nil:
		return mresult{code: proto.ErrBadArguments}
	case m.nodes[path] != nil:
		return mresult{code: proto.ErrNodeExists}
	case parent.owner > 0:
		return mresult{code: proto.ErrNoChildrenForEphemerals}
	}
	if code := m.quota(tx, before, path, int64(len(q.Data)), 1); code != proto.Ok {
		return mresult{code: code}
	}
	n := &mnode{czxid: tx.Zxid, mzxid: tx.Zxid, pzxid: tx.Zxid, ctime: tx.Time, mtime: tx.Time, data: bytes.Clone(q.Data), acl: acl}
	switch {
	case op == proto.OpCreateContainer:
		n.owner = -1 << 63
	case op == proto.OpCreateTTL:
		n.owner = -1<<56 | ttl
	case mode.Ephemeral():
		n.owner = tx.Session
	}
	parent.cv++
	parent.pzxid = tx.Zxid
	m.nodes[path] = n
	r := mresult{path: path, stat: m.stat(path)}
	if strings.HasPrefix(path, "/zookeeper/quota/") && strings.HasSuffix(path, "/zookeeper_stats") {
		limited, _ := m.get(strings.TrimSuffix(strings.TrimPrefix(path, "/zookeeper/quota"), "/zookeeper_stats"))
		var count, size int
		for p, n := range m.nodes {
			if p == limited || strings.HasPrefix(p, strings.TrimSuffix(limited, "/")+"/") {
				count++
				size += len(n.data)
			}
		}
		n.data = fmt.Appendf(nil, "count=%d,bytes=%d", count, size)
	}
	m.charge(path, int64(len(q.Data)), 1)
	r.events = []string{fmt.Sprint(1, path, tx.Zxid, n.acl), fmt.Sprint(4, above, tx.Zxid, parent.acl)}
	return r
}

func (m *model) delete(tx *Txn, path string, version int32) mresult {
	i := strings.LastIndex(path, "/")
	if i < 0 || slices.Contains([]string{"/", "/zookeeper", "/zookeeper/quota", "/zookeeper/config"}, path) {
		return mresult{code: proto.ErrBadArguments}
	}
	_, parent := m.get(path[:i])
	if parent == nil {
		return mresult{code: proto.ErrNoNode}
	}
	if !m.may(tx, parent, proto.PermDelete) {
		return mresult{code: proto.ErrNoAuth}
	}
	n := m.nodes[path]
	switch {
	case n == nil:
		return mresult{code: proto.ErrNoNode}
	case version != -1 && version != n.version:
		return mresult{code: proto.ErrBadVersion}
	case len(m.children(path)) > 0:
		return mresult{code: proto.ErrNotEmpty}
	}
	return mresult{events: m.drop(tx, path)}
}

func (m *model) drop(tx *Txn, path string) []string {
	n := m.nodes[path]
	delete(m.nodes, path)
	above := proto.Parent(path)
	m.nodes[above].pzxid = tx.Zxid
	m.charge(path, -int64(len(n.data)), -1)
	return []string{fmt.Sprint(2, path, tx.Zxid, n.acl), fmt.Sprint(4, above, tx.Zxid, m.nodes[above].acl)}
}

func (m *model) reap(tx *Txn, q *Reap) mresult {
	_, n := m.get(q.Path)
	switch {
	case n == nil:
		return mresult{code: proto.ErrNoNode}
	case len(m.children(q.Path)) > 0:
		return mresult{code: proto.ErrNotEmpty}
	case n.owner >= 0 || n.czxid != q.Czxid || n.mzxid != q.Mzxid || n.owner != -1<<63 && tx.Time-n.mtime <= n.owner&proto.MaxTTL:
		return mresult{code: proto.ErrBadVersion}
	}
	return mresult{events: m.drop(tx, q.Path)}
}

// find makes the checks common to all operations except create and delete.
func (m *model) find(tx *Txn, path string, perm proto.Perms, version func(*mnode) int32, want int32) proto.Code {
	n := m.nodes[path]
	switch {
	case proto.ValidatePath(path) != nil:
		return proto.ErrBadArguments
	case n == nil:
		return proto.ErrNoNode
	case !m.may(tx, n, perm):
		return proto.ErrNoAuth
	case want != -1 && want != version(n):
		return proto.ErrBadVersion
	}
	return proto.Ok
}

func (m *model) set(tx *Txn, before *model, q *proto.SetDataRequest) mresult {
	code := m.find(tx, q.Path, proto.PermWrite, func(n *mnode) int32 { return n.version }, q.Version)
	if code != proto.Ok && code != proto.ErrBadVersion {
		return mresult{code: code}
	}
	n := m.nodes[q.Path]
	delta := int64(len(q.Data) - len(n.data))
	if code := m.quota(tx, before, q.Path, delta, 0); code != proto.Ok {
		return mresult{code: code}
	}
	if code != proto.Ok {
		return mresult{code: code}
	}
	n.data, n.mzxid, n.mtime = bytes.Clone(q.Data), tx.Zxid, tx.Time
	n.version++
	r := mresult{stat: m.stat(q.Path), events: []string{fmt.Sprint(3, q.Path, tx.Zxid, n.acl)}}
	m.charge(q.Path, delta, 0)
	return r
}

func (m *model) setACL(tx *Txn, q *proto.SetACLRequest) mresult {
	if proto.ValidatePath(q.Path) != nil {
		return mresult{code: proto.ErrBadArguments}
	}
	acl, ok := m.list(tx, q.ACL)
	if !ok {
		return mresult{code: proto.ErrInvalidACL}
	}
	if code := m.find(tx, q.Path, proto.PermAdmin, func(n *mnode) int32 { return n.aversion }, q.Version); code != proto.Ok {
		return mresult{code: code}
	}
	n := m.nodes[q.Path]
	n.acl = acl
	n.aversion++
	return mresult{stat: m.stat(q.Path)}
}

// compare returns the first difference between the model and a tree.
func (m *model) compare(t *Tree) error {
	if t.LastZxid() != m.zxid {
		return fmt.Errorf("zxid %#x, model %#x", t.LastZxid(), m.zxid)
	}
	if t.NodeCount()-1 != len(m.nodes) {
		return fmt.Errorf("%d nodes, model %d", t.NodeCount()-1, len(m.nodes))
	}
	for p, want := range m.nodes {
		n := t.Get(p)
		if n == nil {
			return fmt.Errorf("%q is missing", p)
		}
		var s proto.Stat
		n.Stat(&s)
		var names []string
		for name := range t.Children(n) {
			names = append(names, name)
		}
		slices.Sort(names)
		switch {
		case s != *m.stat(p):
			return fmt.Errorf("%q: stat %+v, model %+v", p, s, *m.stat(p))
		case !slices.Equal(names, m.children(p)):
			return fmt.Errorf("%q: children %q, model %q", p, names, m.children(p))
		case !bytes.Equal(n.Data(), want.data) || (n.Data() == nil) != (want.data == nil):
			return fmt.Errorf("%q: data %q, model %q", p, n.Data(), want.data)
		case !slices.Equal(n.ACL(), want.acl):
			return fmt.Errorf("%q: list %v, model %v", p, n.ACL(), want.acl)
		case (*node)(n).Owner() != want.owner:
			return fmt.Errorf("%q: owner %#x, model %#x", p, (*node)(n).Owner(), want.owner)
		}
	}
	return nil
}

// differs returns how a result differs from the model's.
func (r *mresult) differs(got *Result) error {
	var events []string
	for _, e := range got.Events {
		events = append(events, fmt.Sprint(int(e.Type), e.Path, e.Zxid, e.ACL))
	}
	switch {
	case got.Op != r.op || got.Code != r.code:
		return fmt.Errorf("%v %v, model %v %v", got.Op, got.Code, r.op, r.code)
	case r.code == proto.Ok && got.Path != r.path:
		return fmt.Errorf("path %q, model %q", got.Path, r.path)
	case r.stat != nil && got.Stat != *r.stat:
		return fmt.Errorf("stat %+v, model %+v", got.Stat, *r.stat)
	case len(got.Multi) != len(r.multi):
		return fmt.Errorf("%d entries, model %d", len(got.Multi), len(r.multi))
	case !slices.Equal(events, r.events):
		return fmt.Errorf("events\n%q, model\n%q", events, r.events)
	}
	for i := range r.multi {
		if err := r.multi[i].differs(&got.Multi[i]); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return nil
}
