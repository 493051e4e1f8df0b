package lock

import (
	"context"
	"errors"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// revoked is what Curator writes into a lock's znode to ask for it.
const revoked = "__REVOKE__"

// Participant is somebody who holds a lock or waits for it.
type Participant struct {
	Path    string // of his znode
	Data    []byte // what he said with WithData
	Session int64
	Token   Token
	// Shared says that he wants, or holds, a read lock.
	Shared bool
}

func (l *line) participants(ctx context.Context) ([]Participant, error) {
	s, err := l.conn.Session(ctx)
	if err != nil {
		return nil, l.failure(err)
	}
	names, _, err := s.Children(ctx, l.dir)
	if errors.Is(err, client.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, l.failure(err)
	}
	var list []Participant
	for _, e := range l.infixes.line(names) {
		path := recipes.Join(l.dir, e.name)
		data, stat, err := s.Get(ctx, path)
		if errors.Is(err, client.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, l.failure(err)
		}
		list = append(list, Participant{
			Path: path, Data: data, Session: stat.EphemeralOwner, Token: Token(stat.Czxid), Shared: e.kind == shared,
		})
	}
	return list, nil
}

// Revoke asks the holder whose znode is at path, as [Mutex.Participants] tells, to
// release the lock: his RevokeRequested is closed. Curator's holders listen too.
// It replaces the znode's data.
func Revoke(ctx context.Context, conn recipes.Conn, path string) error {
	s, err := conn.Session(ctx)
	if err != nil {
		return err
	}
	for {
		_, err = s.Set(ctx, path, []byte(revoked), client.AnyVersion)
		if !recipes.Again(ctx, err) {
			return err
		}
	}
}
