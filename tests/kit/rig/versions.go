package rig

import (
	"context"
	"slices"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// ShiftVersions returns conn as if every znode had been written by more times
// than it was: a test needs only a few writes instead of 2³². As on a server, a request for version
// -1 matches every version, also for a znode with version -1.
func ShiftVersions(conn recipes.Conn, by int32) recipes.Conn { return shiftedConn{conn, by} }

type shiftedConn struct {
	conn recipes.Conn
	by   int32
}

func (c shiftedConn) Session(ctx context.Context) (recipes.Session, error) {
	s, err := c.conn.Session(ctx)
	if err != nil {
		return nil, err
	}
	return shifted{s, c.by}, nil
}

type shifted struct {
	recipes.Session
	by int32
}

func (s shifted) stat(stat client.Stat) client.Stat {
	stat.Version += s.by
	return stat
}

func (s shifted) version(v int32) int32 {
	if v == client.AnyVersion {
		return v
	}
	return v - s.by
}

func (s shifted) Delete(ctx context.Context, path string, version int32) error {
	return s.Session.Delete(ctx, path, s.version(version))
}

func (s shifted) Set(ctx context.Context, path string, data []byte, version int32) (client.Stat, error) {
	stat, err := s.Session.Set(ctx, path, data, s.version(version))
	return s.stat(stat), err
}

func (s shifted) Multi(ctx context.Context, ops ...recipes.Op) error {
	ops = slices.Clone(ops)
	for i := range ops {
		ops[i].Version = s.version(ops[i].Version)
	}
	return s.Session.Multi(ctx, ops...)
}

func (s shifted) Exists(ctx context.Context, path string) (client.Stat, bool, error) {
	stat, there, err := s.Session.Exists(ctx, path)
	return s.stat(stat), there, err
}

func (s shifted) Get(ctx context.Context, path string) ([]byte, client.Stat, error) {
	data, stat, err := s.Session.Get(ctx, path)
	return data, s.stat(stat), err
}

func (s shifted) GetW(ctx context.Context, path string) ([]byte, client.Stat, recipes.Watch, error) {
	data, stat, w, err := s.Session.GetW(ctx, path)
	return data, s.stat(stat), w, err
}

func (s shifted) ExistsW(ctx context.Context, path string) (client.Stat, bool, recipes.Watch, error) {
	stat, there, w, err := s.Session.ExistsW(ctx, path)
	return s.stat(stat), there, w, err
}
