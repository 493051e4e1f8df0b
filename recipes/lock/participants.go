package lock

import (
	"context"
	"errors"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
)

// revoked is the data that Curator writes into a lock's znode to ask for the lock.
const revoked = "__REVOKE__"

// Participant is a client that holds a lock or waits for it.
type Participant struct {
	Path    string // of its znode
	Data    []byte // set with WithData
	Session int64
	Token   Token
	// Shared is true for a client that holds, or waits for, a read lock.
	Shared bool
}

// participants returns the first most places of the line, or all if most is 0.
func (l *line) participants(ctx context.Context, most int) ([]Participant, error) {
	for {
		s, err := l.conn.Session(ctx)
		if err != nil {
			return nil, l.failure(err)
		}
		list, err := l.look(ctx, s, most)
		if err == nil {
			return list, nil
		}
		// We retry in the next session, because the list doesn't depend on the session.
		if !errors.Is(err, client.ErrSessionExpired) || ctx.Err() != nil {
			return nil, l.failure(err)
		}
	}
}

func (l *line) look(ctx context.Context, s recipes.Session, most int) ([]Participant, error) {
	names, _, err := s.Children(ctx, l.dir)
	if errors.Is(err, client.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Participant
	places, err := l.places(ctx, s, names)
	if err != nil {
		return nil, err
	}
	for _, e := range places {
		path := recipe.Join(l.dir, e.name)
		data, stat, err := s.Get(ctx, path)
		if errors.Is(err, client.ErrNoNode) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, Participant{
			Path: path, Data: data, Session: stat.EphemeralOwner, Token: Token(stat.Czxid), Shared: e.kind == shared,
		})
		if len(list) == most {
			break
		}
	}
	return list, nil
}

// Revoke asks the holder with the znode at path, as returned by [Mutex.Participants], to
// release the lock: we close the channel that its RevokeRequested returns. Curator's holders
// can listen for this, too. Revoke replaces the znode's data.
func Revoke(ctx context.Context, conn recipes.Conn, path string) error {
	return recipe.InSession(ctx, conn, func(s recipes.Session) error {
		_, err := s.Set(ctx, path, []byte(revoked), client.AnyVersion)
		return err
	})
}
