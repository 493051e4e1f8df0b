package conformance

import (
	"crypto/sha1"
	"fmt"
	"slices"
	"strings"
)

// replyHeader is the size of xid, zxid and error code.
const replyHeader = 16

// reply decodes the reply to r, including the header, and returns it as text that
// accounts for every byte.
func (n *normaliser) reply(r request, payload []byte) string {
	if r.op.reply == shapeHandshake && len(payload) > replyHeader {
		return n.handshake(payload)
	}
	d := &decoder{b: payload}
	xid, zxid, code := d.int(), d.long(), d.int()
	shown := n.zxid(zxid)
	if r.has("anyzxid") {
		shown = "*"
	}
	out := fmt.Sprintf("xid=%d zxid=%s err=%d", xid, shown, code)
	switch {
	case code == 0:
		out += n.body(r.op.reply, d, r.has("unordered"))
	case r.op.reply == shapeMulti && len(d.b) > 0:
		out += " and yet" + n.multi(d)
	}
	return out + d.rest()
}

// rest reports leftover or missing bytes after decoding, e.g. of a wrong length.
func (d *decoder) rest() string {
	switch {
	case d.short:
		return fmt.Sprintf(" TRUNCATED before %x", d.b)
	case len(d.b) > 0:
		return fmt.Sprintf(" LEFTOVER %x", d.b)
	}
	return ""
}

func (n *normaliser) body(s shape, d *decoder, unordered bool) string {
	switch s {
	case shapePath:
		return " path=" + text(d.blob())
	case shapePathStat:
		return " path=" + text(d.blob()) + n.stat(d)
	case shapeStat:
		return n.stat(d)
	case shapeDataStat:
		return " data=" + text(d.blob()) + n.stat(d)
	case shapeACLStat:
		return " acl=" + acl(d, unordered) + n.stat(d)
	case shapeNames:
		return " names=" + names(d)
	case shapeNamesStat:
		return " names=" + names(d) + n.stat(d)
	case shapeInt:
		return fmt.Sprintf(" int=%d", d.int())
	case shapeData:
		return " token=" + text(d.blob())
	case shapeIDs:
		return " ids=" + ids(d)
	case shapeMulti:
		return n.multi(d)
	}
	return ""
}

func (n *normaliser) stat(d *decoder) string {
	czxid, mzxid, ctime, mtime := d.long(), d.long(), d.long(), d.long()
	ver, cversion, aversion := d.int(), d.int(), d.int()
	owner, length, children, pzxid := d.long(), d.int(), d.int(), d.long()
	if d.short {
		return ""
	}
	return fmt.Sprintf(" stat{c=%s m=%s p=%s ct=%s mt=%s v=%d cv=%d av=%d owner=%s len=%d kids=%d}",
		n.zxid(czxid), n.zxid(mzxid), n.zxid(pzxid), n.time(czxid, ctime), n.time(mzxid, mtime),
		ver, cversion, aversion, n.session(owner), length, children)
}

// enclose formats a list. It shows a long list by its length and hash.
func enclose(elements []string) string {
	all := strings.Join(elements, " ")
	if len(all) > 4*longest {
		return fmt.Sprintf("[%d elements sha1:%x]", len(elements), sha1.Sum([]byte(all)))
	}
	return "[" + all + "]"
}

// names reads and sorts a list. ZooKeeper leaves its order open.
func names(d *decoder) string {
	count := d.count(4)
	if count < 0 {
		return "null"
	}
	var list []string
	for range count {
		list = append(list, text(d.blob()))
	}
	slices.Sort(list)
	return enclose(list)
}

// ids reads and sorts whoAmI's identities. ZooKeeper leaves their order open.
func ids(d *decoder) string {
	count := d.count(8)
	if count < 0 {
		return "null"
	}
	var list []string
	for range count {
		list = append(list, text(d.blob())+":"+text(d.blob()))
	}
	slices.Sort(list)
	return enclose(list)
}

func acl(d *decoder, unordered bool) string {
	count := d.count(12)
	if count < 0 {
		return "null"
	}
	var list []string
	for range count {
		list = append(list, fmt.Sprintf("%d:%s:%s", d.int(), text(d.blob()), text(d.blob())))
	}
	if unordered {
		slices.Sort(list)
	}
	return enclose(list)
}

// multi reads results up to the header that says done.
func (n *normaliser) multi(d *decoder) string {
	var out strings.Builder
	for !d.short {
		kind, done, code := d.int(), d.byte(), d.int()
		fmt.Fprintf(&out, " {%d,%d,%d", kind, done, code)
		if done == 0 {
			switch kind {
			case -1:
				fmt.Fprintf(&out, " int=%d", d.int())
			case 1:
				out.WriteString(n.body(shapePath, d, false))
			case 15:
				out.WriteString(n.body(shapePathStat, d, false))
			case 5:
				out.WriteString(n.body(shapeStat, d, false))
			case codeGetData:
				out.WriteString(n.body(shapeDataStat, d, false))
			case codeGetChildren:
				out.WriteString(n.body(shapeNames, d, false))
			case 2, 13:
			default:
				out.WriteString(" ?")
			}
		}
		out.WriteString("}")
		if done != 0 {
			break
		}
	}
	return out.String()
}

// event decodes a notification.
func (n *normaliser) event(payload []byte) string {
	d := &decoder{b: payload}
	xid, zxid, code := d.int(), d.long(), d.int()
	kind, state, path := d.int(), d.int(), d.blob()
	return fmt.Sprintf("event xid=%d zxid=%s err=%d type=%d state=%d path=%s",
		xid, n.zxid(zxid), code, kind, state, text(path)) + d.rest()
}

// handshake decodes the reply to a connect packet.
func (n *normaliser) handshake(payload []byte) string {
	d := &decoder{b: payload}
	proto, timeout, sid, password := d.int(), d.int(), d.long(), d.blob()
	out := fmt.Sprintf("connected bytes=%d protocol=%d timeout=%d session=%s password=%s",
		len(payload), proto, timeout, n.session(sid), n.password(password))
	if len(d.b) > 0 {
		out += fmt.Sprintf(" readOnly=%d", d.byte())
	}
	return out + d.rest()
}
