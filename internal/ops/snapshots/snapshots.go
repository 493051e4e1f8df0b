package snapshots

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/zkgo/zkgo/internal/auth/certs"
	"github.com/zkgo/zkgo/internal/auth/schemes"
	"github.com/zkgo/zkgo/internal/ops/admin"
	"github.com/zkgo/zkgo/internal/ops/stats"
	"github.com/zkgo/zkgo/proto"
	"github.com/zkgo/zkgo/raftfsm"
	"github.com/zkgo/zkgo/session"
	"github.com/zkgo/zkgo/tree"
)

// The AdminServer's snapshots are files in ZooKeeper's format. The server writes such a
// file into the data directory first: the response carries its length before its
// content, and a client that reads slowly must not pin a snapshot of the tree.

// exportPattern matches these files, so that a restart can remove the files of a killed
// server.
const exportPattern = "admin-snapshot-*.tmp"

// Snapshots implements admin.Snapshotter.
type Snapshots struct {
	Node    *raftfsm.Node
	Dir     string // for the files; empty: the system's directory for temporary files
	Schemes *schemes.Builtin
	// SuperUser is the subject of the super user's certificate, if one is configured.
	SuperUser string
	// Write writes a state as a file of ZooKeeper, and Read reads one. Nil: the program
	// doesn't include this format.
	Write func(w io.Writer, snap *tree.Snapshot, sessions *session.Table) error
	Read  func(r io.Reader) (*tree.Tree, *session.Table, error)
	Stats *stats.Server
	Log   *slog.Logger
	// Complain logs a refusal to a client, at a limited rate.
	Complain func(msg string, args ...any)
}

var _ admin.Snapshotter = (*Snapshots)(nil)

// Sweep removes the files that an earlier run left behind.
func (s *Snapshots) Sweep() {
	if s.Dir == "" {
		return
	}
	left, _ := filepath.Glob(filepath.Join(s.Dir, exportPattern)) // the pattern is valid
	for _, name := range left {
		if err := os.Remove(name); err != nil {
			s.Log.Warn("could not remove the files of an interrupted snapshot", "error", err)
		}
	}
}

// Authorize implements admin.Authorizer. The whole state reveals every secret in it, so an
// administrator is the super user, or has all permissions on the root as an identity that
// the ACL names; in ZooKeeper, one permission is enough. We ignore the permissions of all
// clients and of addresses, and skipACL, because a caller needs no credentials for these.
func (s *Snapshots) Authorize(r *http.Request, scheme, auth string) admin.Access {
	ids, ok := s.identify(r, scheme, auth)
	if !ok {
		s.Complain("authentication failed for a command over HTTP", "client", r.RemoteAddr, "scheme", scheme)
		return admin.Unknown
	}
	super := func(id proto.ID) bool { return id.Scheme == schemes.Super }
	if slices.ContainsFunc(ids, super) {
		return admin.Granted
	}
	t := s.Node.Tree()
	t.RLock()
	defer t.RUnlock()
	named := slices.DeleteFunc(slices.Clone(t.Get("/").ACL()), func(a proto.ACL) bool {
		return a.ID.Scheme == "world" || a.ID.Scheme == "ip"
	})
	if len(named) == 0 { // an empty list would allow everything
		return admin.Denied
	}
	for _, perm := range []proto.Perms{proto.PermRead, proto.PermWrite, proto.PermCreate, proto.PermDelete, proto.PermAdmin} {
		if !tree.Allowed(named, perm, ids) {
			return admin.Denied
		}
	}
	return admin.Granted
}

// identify returns the identities that a request proves.
func (s *Snapshots) identify(r *http.Request, scheme, auth string) ([]proto.ID, bool) {
	switch scheme {
	case "ip":
		return nil, true
	case schemes.Digest:
		if auth == "" {
			return nil, false
		}
		return s.Schemes.Identify(&proto.AuthPacket{Scheme: scheme, Auth: []byte(auth)})
	case schemes.X509:
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			return nil, false
		}
		subject, err := certs.Subject(r.TLS.PeerCertificates[0])
		ids := []proto.ID{{Scheme: schemes.X509, ID: subject}}
		if s.SuperUser != "" && subject == s.SuperUser {
			ids = append(ids, proto.ID{Scheme: schemes.Super})
		}
		return ids, err == nil
	}
	return nil, false
}

// Export implements admin.Snapshotter. The snapshot contains every write that any
// server acknowledged before the call.
func (s *Snapshots) Export(ctx context.Context) (*admin.Export, error) {
	e, err := s.export(ctx)
	if err != nil {
		s.Stats.SnapshotErrors.Add(1)
	}
	return e, err
}

// errNoFormat refuses what needs the format of ZooKeeper's files.
var errNoFormat = errors.New("this program does not include ZooKeeper's file formats: it has to set Config.Env.Formats, e.g. to formats.All() of server/formats")

func (s *Snapshots) export(ctx context.Context) (*admin.Export, error) {
	if s.Write == nil {
		return nil, errNoFormat
	}
	n := s.Node
	if err := n.Barrier(ctx); err != nil {
		return nil, fmt.Errorf("the server does not know whether it is up to date: %w", err)
	}
	f, err := os.CreateTemp(s.Dir, exportPattern)
	if err != nil {
		return nil, err
	}
	e := &admin.Export{Content: &exportFile{f}}
	t := n.Tree()
	t.Lock()
	snap, sessions := t.Snapshot(), n.Sessions().Clone()
	t.Unlock()
	e.Zxid = snap.Zxid()
	w := bufio.NewWriterSize(f, 256<<10)
	err = s.Write(w, snap, sessions)
	snap.Release()
	if err == nil {
		err = w.Flush()
	}
	if err == nil {
		e.Bytes, err = f.Seek(0, io.SeekEnd)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("writing a snapshot: %w", err), e.Content.Close())
	}
	return e, nil
}

// exportFile removes its file when it is closed.
type exportFile struct{ *os.File }

// Close implements io.Closer.
func (f *exportFile) Close() error {
	return errors.Join(f.File.Close(), os.Remove(f.Name()))
}

// Keep implements admin.Snapshotter.
func (s *Snapshots) Keep() (zxid, bytes int64, err error) {
	if err := s.Node.Snapshot(); err != nil {
		s.Stats.SnapshotErrors.Add(1)
		return 0, 0, err
	}
	zxid, _, _ = s.Node.LastSnapshot()
	return zxid, s.Node.LastSnapshotBytes(), nil
}

// Restore implements admin.Snapshotter. ZooKeeper replaces the state of one server without
// telling the other servers or the clients: the servers of an ensemble then differ, and they
// permanently refuse a client that has seen a later zxid. In zkgo all servers replace their
// state at the same log index, end all sessions and continue with an epoch above any that
// clients have seen.
func (s *Snapshots) Restore(ctx context.Context, r io.Reader) (int64, error) {
	begin := time.Now()
	zxid, err := s.restore(ctx, r)
	if err != nil {
		s.Stats.RestoreErrors.Add(1)
		s.Log.Warn("restore over HTTP failed", "error", err)
		return 0, err
	}
	s.Stats.Restores.Since(begin)
	s.Log.Info("restored a state over HTTP", "zxid", fmt.Sprintf("0x%x", uint64(zxid)), "took", time.Since(begin))
	return zxid, nil
}

func (s *Snapshots) restore(ctx context.Context, r io.Reader) (int64, error) {
	n := s.Node
	if s.Read == nil {
		return 0, fmt.Errorf("%w: %w", admin.ErrUnavailable, errNoFormat)
	}
	if err := n.CanReplace(); err != nil { // before reading the whole request
		return 0, fmt.Errorf("%w: %w", admin.ErrUnavailable, err)
	}
	t, sessions, err := s.Read(r)
	if err != nil {
		return 0, fmt.Errorf("nothing was changed: %w", err)
	}
	zxid, err := n.Replace(ctx, t, sessions)
	for _, e := range []error{raftfsm.ErrRestoreLevel, raftfsm.ErrRestoreBusy, raftfsm.ErrRestoreNoLeader} {
		if errors.Is(err, e) {
			return 0, fmt.Errorf("%w: %w", admin.ErrUnavailable, err)
		}
	}
	return zxid, err
}
