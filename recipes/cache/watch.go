package cache

import (
	"context"
	"errors"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/recipes"
)

// patience is how long the cache waits for the server to remove watches when a cache ends.
const patience = 5 * time.Second

// await marks a znode when its one-shot watch fires. The goroutines that read znodes call
// it.
func (l *load) await(w recipes.Watch, path string, n need) {
	l.wg.Go(func() {
		select {
		case _, ok := <-w.Events():
			if !ok {
				l.end(client.ErrSessionExpired)
				return
			}
			l.c.mu.Lock()
			defer l.c.mu.Unlock()
			l.mark(path, n)
		case <-l.ctx.Done():
			l.remove(w)
		}
	})
}

// remove removes a watch, even though ctx has ended.
func (l *load) remove(w recipes.Watch) {
	l.slots <- struct{}{}
	defer func() { <-l.slots }()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	w.Remove(ctx)
}

// watchAll sets one watch for the whole tree, if the option asks for it and the
// client and the server support it.
func (l *load) watchAll() error {
	s, can := l.s.(recipes.RecursiveWatcher)
	if !can || !l.c.cfg.recursive {
		return nil
	}
	w, err := s.WatchRecursive(l.ctx, l.c.root)
	switch {
	case err == nil:
		l.recursive = true
		l.wg.Go(func() { l.pump(w) })
	case !errors.Is(err, client.ErrUnimplemented):
		return err
	}
	return nil
}

// pump marks the znodes that the recursive watch reports.
func (l *load) pump(w recipes.Watch) {
	for {
		select {
		case e, ok := <-w.Events():
			if !ok {
				l.end(client.ErrSessionExpired)
				return
			}
			l.c.mu.Lock()
			switch e.Type {
			case client.EventNodeCreated:
				l.mark(e.Path, needAll)
			case client.EventNodeDataChanged, client.EventNodeDeleted:
				l.mark(e.Path, needData)
			case client.EventResync:
				l.again()
			}
			l.c.mu.Unlock()
		case <-l.ctx.Done():
			l.remove(w)
			return
		}
	}
}
