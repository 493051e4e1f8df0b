package inspect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/tree"
)

// Summary describes the contents of a snapshot by subtree.
type Summary struct {
	*Image
	Nodes      int       `json:"nodes"`
	Bytes      int64     `json:"bytes"` // of paths and data
	Ephemerals int       `json:"ephemerals"`
	Sessions   int       `json:"sessions"`
	Owners     []Owner   `json:"owners,omitempty"` // sessions with ephemerals
	Subtrees   []Subtree `json:"subtrees"`
}

// Owner is a session that owns ephemeral znodes.
type Owner struct {
	Session    Hex   `json:"session"`
	Timeout    int32 `json:"timeoutMs"` // 0: the session isn't in the snapshot
	Ephemerals int   `json:"ephemerals"`
}

// Subtree is a znode with its descendants.
type Subtree struct {
	Path       string `json:"path"`
	Nodes      int    `json:"nodes"`
	Bytes      int64  `json:"bytes"` // of data
	Largest    int    `json:"largest"`
	LargestAt  string `json:"largestAt,omitempty"`
	Ephemerals int    `json:"ephemerals"`
	Children   int    `json:"children"`
	LastZxid   Hex    `json:"lastZxid"` // of the newest change
}

// Summarise counts the contents of img by subtree, down to the given depth.
func Summarise(img *Image, levels int) *Summary {
	t := img.Tree
	s := &Summary{Image: img, Ephemerals: t.EphemeralCount(), Sessions: len(img.Sessions), Bytes: t.DataSize()}
	timeouts := make(map[Hex]int32)
	for _, row := range img.Sessions {
		timeouts[row.ID] = row.Timeout
	}
	for id, paths := range t.EphemeralSessions() {
		s.Owners = append(s.Owners, Owner{Hex(id), timeouts[Hex(id)], len(paths)})
	}
	slices.SortFunc(s.Owners, func(a, b Owner) int { return cmp.Compare(uint64(a.Session), uint64(b.Session)) })
	var open []*Subtree // the path from the root to the current znode
	var all []*Subtree
	walk(t, t.Get("/"), func(n *tree.Node) {
		s.Nodes++
		d := depth(n.Path())
		open = open[:min(len(open), d)]
		if d <= levels {
			sub := &Subtree{Path: n.Path(), Children: n.NumChildren()}
			open, all = append(open, sub), append(all, sub)
		}
		for _, sub := range open {
			sub.add(n)
		}
	})
	for _, sub := range all {
		s.Subtrees = append(s.Subtrees, *sub)
	}
	return s
}

func (s *Subtree) add(n *tree.Node) {
	size := len(n.Data())
	s.Nodes++
	s.Bytes += int64(size)
	if size > s.Largest {
		s.Largest, s.LargestAt = size, n.Path()
	}
	var stat proto.Stat
	n.Stat(&stat)
	if stat.EphemeralOwner != 0 {
		s.Ephemerals++
	}
	s.LastZxid = max(s.LastZxid, Hex(stat.Mzxid), Hex(stat.Pzxid))
}

// Text writes the summary in human-readable form.
func (s *Summary) Text(w io.Writer) error {
	fmt.Fprintf(w, "%s: snapshot of %s at zxid %v\n", s.Path, s.Format, s.Zxid)
	if s.Ensemble != "" {
		fmt.Fprintf(w, "ensemble %s, log index %d\n", s.Ensemble, s.Index)
	}
	if s.Note != "" {
		fmt.Fprintln(w, s.Note)
	}
	fmt.Fprintf(w, "%d znodes, %d bytes, %d sessions, %d ephemerals, digest %s\n\n", s.Nodes, s.Bytes, s.Sessions, s.Ephemerals, s.Digest)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "ZNODES\tBYTES\tLARGEST\tEPHEMERALS\tLAST CHANGE\t  SUBTREE")
	for _, sub := range s.Subtrees {
		fmt.Fprintf(tab, "%d\t%d\t%d\t%d\t%v\t  %q\n", sub.Nodes, sub.Bytes, sub.Largest, sub.Ephemerals, sub.LastZxid, sub.Path)
	}
	if len(s.Owners) > 0 {
		fmt.Fprintln(tab, "\t\t\t\t\t")
		fmt.Fprintln(tab, "EPHEMERALS\tTIMEOUT\tSESSION\t")
		for _, o := range s.Owners {
			fmt.Fprintf(tab, "%d\t%d ms\t%v\t\n", o.Ephemerals, o.Timeout, o.Session)
		}
	}
	return tab.Flush()
}

// JSON writes v as indented JSON.
func JSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
