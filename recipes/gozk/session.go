package gozk

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// session is one session of a *zk.Conn.
type session struct {
	a  *adapter
	id int64

	mu    sync.Mutex
	spare map[watched]<-chan zk.Event // watches without a waiter

	// see hold.go
	confirmed time.Time
	holds     int
	quiet     context.CancelFunc
}

func (s *session) ID() int64 { return s.id }

func (s *session) Create(ctx context.Context, path string, data []byte, mode recipes.Mode, acl []client.ACL) (string, error) {
	if mode == recipes.Container {
		return s.createContainer(ctx, path, data, acl)
	}
	r := request{op: "create", path: path, write: true}
	if mode == recipes.Ephemeral || mode == recipes.EphemeralSequential {
		r.stray = func(created any) {
			if path, ok := created.(string); ok {
				s.a.deleteStray(path, data)
			}
		}
	}
	return call(ctx, s, r, func() (string, error) { return s.a.zk.Create(path, data, flags(mode), acls(acl)) })
}

// createContainer creates a container, or a persistent znode if the server has no
// containers.
func (s *session) createContainer(ctx context.Context, path string, data []byte, acl []client.ACL) (string, error) {
	r := request{op: "createContainer", path: path, write: true}
	created, err := call(ctx, s, r, func() (string, error) {
		return s.a.zk.CreateContainer(path, data, zk.FlagContainer, acls(acl))
	})
	if errors.Is(err, client.ErrUnimplemented) {
		return s.Create(ctx, path, data, recipes.Persistent, acl)
	}
	return created, err
}

// deleteStray deletes an ephemeral znode that was created in a later session than its
// intended one. If the later session has ended, too, the znode is gone. We compare the data
// to recognize a znode that was created since with the same name: locks have a unique mark
// in the name or the data.
func (a *adapter) deleteStray(path string, data []byte) {
	id := a.zk.SessionID()
	for !a.isClosed() && a.zk.SessionID() == id {
		have, stat, err := a.zk.Get(path)
		if err == nil {
			if stat.EphemeralOwner != id || string(have) != string(data) {
				return
			}
			err = a.zk.Delete(path, -1)
		}
		if err == nil || code(err) != 0 {
			return
		}
		time.Sleep(pause)
	}
}

func flags(mode recipes.Mode) int32 {
	switch mode {
	case recipes.PersistentSequential:
		return zk.FlagSequence
	case recipes.Ephemeral:
		return zk.FlagEphemeral
	case recipes.EphemeralSequential:
		return zk.FlagEphemeral | zk.FlagSequence
	case recipes.Container:
		return zk.FlagContainer
	}
	return 0
}

// acls converts an ACL. nil means the default.
func acls(list []client.ACL) []zk.ACL {
	if list == nil {
		return zk.WorldACL(zk.PermAll)
	}
	out := make([]zk.ACL, len(list))
	for i, a := range list {
		out[i] = zk.ACL{Perms: int32(a.Perms), Scheme: a.ID.Scheme, ID: a.ID.ID} //nolint:gosec // five bits
	}
	return out
}

func (s *session) Delete(ctx context.Context, path string, version int32) error {
	_, err := call(ctx, s, request{op: "delete", path: path, write: true}, func() (struct{}, error) {
		return struct{}{}, s.a.zk.Delete(path, version)
	})
	return err
}

func (s *session) Set(ctx context.Context, path string, data []byte, version int32) (client.Stat, error) {
	return call(ctx, s, request{op: "setData", path: path, write: true}, func() (client.Stat, error) {
		stat, err := s.a.zk.Set(path, data, version)
		return statOf(stat, err), err
	})
}

func (s *session) Multi(ctx context.Context, ops ...recipes.Op) error {
	list := make([]any, len(ops))
	for i, op := range ops {
		switch op.Kind {
		case recipes.OpCreate:
			list[i] = &zk.CreateRequest{Path: op.Path, Data: op.Data, Acl: acls(op.ACL), Flags: flags(op.Mode)}
		case recipes.OpSet:
			list[i] = &zk.SetDataRequest{Path: op.Path, Data: op.Data, Version: op.Version}
		case recipes.OpDelete:
			list[i] = &zk.DeleteRequest{Path: op.Path, Version: op.Version}
		default:
			list[i] = &zk.CheckVersionRequest{Path: op.Path, Version: op.Version}
		}
	}
	r := request{op: "multi", write: true, stray: func(created any) { s.strays(ops, created) }}
	_, err := call(ctx, s, r, func() ([]zk.MultiResponse, error) { return s.a.zk.Multi(list...) })
	return err
}

// strays deletes the ephemeral znodes that a transaction created in a later session
// than its intended one.
func (s *session) strays(ops []recipes.Op, created any) {
	results, _ := created.([]zk.MultiResponse)
	for i, op := range ops {
		if i < len(results) && op.Kind == recipes.OpCreate && (op.Mode == recipes.Ephemeral || op.Mode == recipes.EphemeralSequential) {
			s.a.deleteStray(results[i].String, op.Data)
		}
	}
}

// statOf converts a Stat. It returns the zero Stat for nil.
func statOf(s *zk.Stat, err error) client.Stat {
	if s == nil || err != nil {
		return client.Stat{}
	}
	return client.Stat(*s)
}

type read struct {
	there bool
	data  []byte
	names []string
	stat  client.Stat
	event <-chan zk.Event // channel of a new watch
}

func (s *session) Exists(ctx context.Context, path string) (client.Stat, bool, error) {
	r, err := call(ctx, s, request{op: "exists", path: path}, func() (read, error) { return s.a.exists(path) })
	return r.stat, r.there, err
}

func (s *session) Get(ctx context.Context, path string) ([]byte, client.Stat, error) {
	r, err := call(ctx, s, request{op: "getData", path: path}, func() (read, error) { return s.a.get(path) })
	return r.data, r.stat, err
}

func (s *session) Children(ctx context.Context, path string) ([]string, client.Stat, error) {
	r, err := call(ctx, s, request{op: "getChildren2", path: path}, func() (read, error) { return s.a.children(path) })
	return r.names, r.stat, err
}

func (s *session) Sync(ctx context.Context, path string) error {
	_, err := call(ctx, s, request{op: "sync", path: path}, func() (string, error) { return s.a.zk.Sync(path) })
	return err
}

func (a *adapter) exists(path string) (read, error) {
	there, stat, err := a.zk.Exists(path)
	r := read{there: there && err == nil}
	if r.there {
		r.stat = statOf(stat, err)
	}
	return r, err
}

func (a *adapter) get(path string) (read, error) {
	data, stat, err := a.zk.Get(path)
	return read{data: data, stat: statOf(stat, err)}, err
}

func (a *adapter) children(path string) (read, error) {
	names, stat, err := a.zk.Children(path)
	return read{names: names, stat: statOf(stat, err)}, err
}
