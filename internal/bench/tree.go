package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/zkgo/zkgo/proto"
)

// bulk is the number of requests in flight on a connection that creates or removes
// znodes in bulk.
const bulk = 256

// spread creates cfg.Nodes znodes, in about as many directories as there are znodes
// in each, and stores their paths in r.keys.
func spread(r *run) error {
	dirs := int(math.Ceil(math.Sqrt(float64(r.cfg.Nodes))))
	r.keys = make([]string, r.cfg.Nodes)
	for i := range r.keys {
		r.keys[i] = fmt.Sprintf("%s/k%d/%d", r.root, i%dirs, i/dirs)
	}
	for d := range dirs {
		if err := r.make(r.conns[0], fmt.Sprintf("%s/k%d", r.root, d)); err != nil {
			return err
		}
	}
	return r.loadKeys()
}

// loadKeys creates the znodes in r.keys, spread over all connections.
func (r *run) loadKeys() error {
	return r.each(0, func(i int, c *conn) error {
		create := proto.CreateRequest{Data: r.value, ACL: proto.OpenACL()}
		next := i
		_, err := c.timed(bulk, func() bool {
			if next >= len(r.keys) {
				return false
			}
			create.Path = r.keys[next]
			next += len(r.conns)
			c.request(proto.OpCreate, &create)
			return true
		}, func(code proto.Code, took time.Duration) error {
			r.done(i, took)
			return code.Err()
		})
		return err
	})
}

// clean removes the znodes that the run has created, even after the run's context has
// ended. It doesn't remove ancestors that other clients still use.
func (r *run) clean() error {
	if r.cfg.Keep || r.root == "" && len(r.made) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), cleanTime)
	defer cancel()
	c, err := dial(ctx, &r.cfg, r.cfg.Servers[0]) // a new connection, because the work's connections may be lost or receive events
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.call(proto.OpSync, &proto.SyncRequest{Path: "/"}, nil); err != nil {
		return err
	}
	if r.root != "" {
		if err := r.remove(c, r.root); err != nil {
			return err
		}
	}
	above := r.made
	if r.cfg.Root == defaultRoot && len(above) == 0 {
		above = []string{defaultRoot} // left by another run, which could not remove it while this one used it
	}
	for _, path := range slices.Backward(above) {
		err := c.call(proto.OpDelete, &proto.DeleteRequest{Path: path, Version: -1}, nil)
		if err != nil && !errors.Is(err, proto.ErrNoNode) && !errors.Is(err, proto.ErrNotEmpty) {
			return err
		}
	}
	return nil
}

// remove removes a znode and everything below it.
func (r *run) remove(c *conn, path string) error {
	if err := r.empty(c, path); err != nil {
		return err
	}
	err := c.call(proto.OpDelete, &proto.DeleteRequest{Path: path, Version: -1}, nil)
	if errors.Is(err, proto.ErrNoNode) {
		return nil
	}
	return err
}

// empty removes everything below a znode: first the children without children, many
// requests at a time, then the others one by one.
func (r *run) empty(c *conn, path string) error {
	var list proto.GetChildrenResponse
	if err := c.call(proto.OpGetChildren, &proto.GetChildrenRequest{Path: path}, &list); err != nil {
		if errors.Is(err, proto.ErrNoNode) {
			return nil
		}
		return err
	}
	var full []string
	asked, answered := 0, 0
	del := proto.DeleteRequest{Version: -1}
	err := c.window(bulk, func() bool {
		if asked == len(list.Children) {
			return false
		}
		del.Path = path + "/" + list.Children[asked]
		asked++
		c.request(proto.OpDelete, &del)
		return true
	}, func(got reply) error {
		answered++
		switch got.Err {
		case proto.Ok, proto.ErrNoNode:
		case proto.ErrNotEmpty:
			full = append(full, path+"/"+list.Children[answered-1])
		default:
			return got.Err
		}
		return nil
	})
	for _, child := range full {
		if err == nil {
			err = r.remove(c, child)
		}
	}
	return err
}

// ownPath returns the path of connection i's own znode.
func (r *run) ownPath(i int) string { return r.root + "/c" + strconv.Itoa(i) }

// makeOwn creates connection i's own znode.
func (r *run) makeOwn(i int, c *conn) error { return r.make(c, r.ownPath(i)) }
