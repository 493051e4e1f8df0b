package bench

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// ownLocks gives every connection its own lock, without contention.
func ownLocks(r *run) error {
	if err := r.each(0, r.makeOwn); err != nil {
		return err
	}
	return r.each(0, func(i int, c *conn) error {
		for !r.over.Load() && r.ctx.Err() == nil {
			asked := time.Now()
			name, _, err := acquire(c, r.ownPath(i))
			if err != nil {
				return err
			}
			if err := c.call(proto.OpDelete, &proto.DeleteRequest{Path: name, Version: -1}, nil); err != nil {
				return err
			}
			r.done(i, time.Since(asked))
		}
		return r.ctx.Err()
	})
}

// sharedLock makes all connections contend for one lock.
func sharedLock(r *run) error {
	dir := r.root + "/lock"
	if err := r.make(r.conns[0], dir); err != nil {
		return err
	}
	if err := r.sync(dir); err != nil {
		return err
	}
	base := time.Now()
	var released atomic.Int64 // when the last holder sent its release, since base
	return r.each(0, func(i int, c *conn) error {
		for !r.over.Load() && r.ctx.Err() == nil {
			name, waited, err := acquire(c, dir)
			if err != nil {
				return err
			}
			now := time.Since(base)
			if waited {
				r.done(i, now-time.Duration(released.Load()))
			}
			released.Store(int64(time.Since(base)))
			if err := c.call(proto.OpDelete, &proto.DeleteRequest{Path: name, Version: -1}, nil); err != nil {
				return err
			}
		}
		return r.ctx.Err()
	})
}

// acquire implements ZooKeeper's lock recipe. It returns the holder's znode, and
// whether it had to wait for another holder.
func acquire(c *conn, dir string) (name string, waited bool, err error) {
	create := proto.CreateRequest{Path: dir + "/lock-", ACL: proto.OpenACL(), Flags: int32(proto.ModeEphemeralSequential)}
	var created proto.CreateResponse
	if err := c.call(proto.OpCreate, &create, &created); err != nil {
		return "", false, err
	}
	mine := strings.TrimPrefix(created.Path, dir+"/")
	for {
		var list proto.GetChildrenResponse
		if err := c.call(proto.OpGetChildren, &proto.GetChildrenRequest{Path: dir}, &list); err != nil {
			return "", waited, err
		}
		before := ""
		for _, other := range list.Children {
			if other < mine {
				before = max(before, other)
			}
		}
		if before == "" {
			if !slices.Contains(list.Children, mine) {
				return "", waited, errors.New("the lock's znode is gone")
			}
			return created.Path, waited, nil
		}
		err := c.call(proto.OpExists, &proto.ExistsRequest{Path: dir + "/" + before, Watch: true}, nil)
		if errors.Is(err, proto.ErrNoNode) {
			// This leaves a watch, but for a name that is never used again.
			continue
		}
		waited = true
		if err == nil {
			err = c.event()
		}
		if err != nil {
			return "", waited, err
		}
	}
}
