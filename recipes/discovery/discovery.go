package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zkgo/zkgo/client"
	"github.com/zkgo/zkgo/internal/recipe"
	"github.com/zkgo/zkgo/recipes"
	"github.com/zkgo/zkgo/recipes/node"
)

var (
	// ErrNotFound means that there is no such instance, or that no instance may be chosen.
	ErrNotFound = errors.New("no instance")
	// ErrBadInstance means that an instance is not valid and can't be registered.
	ErrBadInstance = errors.New("instance cannot be registered")
)

// Discovery is a service registry. All methods are safe for concurrent use. Methods
// that ask the server retry after a lost connection or the end of a session until ctx
// ends. A refusal of the server is an error, e.g. [client.ErrNoAuth].
type Discovery[P any] struct {
	conn recipes.Conn
	base string
}

// New returns the registry at base, a directory that need not exist.
func New[P any](conn recipes.Conn, base string) *Discovery[P] {
	return &Discovery[P]{conn: conn, base: base}
}

// Registration is an instance that is registered until Close. All methods are safe for
// concurrent use. A lost connection has no effect while the session lasts. After the
// session has ended, other clients don't see a Dynamic instance until we have registered it
// again in the next session, which we do automatically.
type Registration[P any] struct {
	inst Instance[P]
	node *node.Node
}

// Register keeps an instance registered until the Registration is closed: we register it
// again if its session ends or its znode is deleted. It replaces an instance of the same
// name and id. To wait until the instance is registered, call the Registration's Wait.
// Register fails with [ErrBadInstance] if the name is empty, the name or id contains a
// slash, the type is DynamicSequential, or the instance can't be encoded as JSON.
func (d *Discovery[P]) Register(inst Instance[P]) (*Registration[P], error) {
	if inst.ID == "" {
		inst.ID = recipe.NewUUID()
	}
	if inst.RegistrationTimeUTC == 0 {
		inst.RegistrationTimeUTC = time.Now().UnixMilli()
	}
	if inst.Type == "" {
		inst.Type = Dynamic
	}
	if inst.Name == "" || strings.Contains(inst.Name+inst.ID, "/") || inst.Type == DynamicSequential {
		return nil, fmt.Errorf("discovery %s: %w: name %q, id %q, type %s", d.base, ErrBadInstance, inst.Name, inst.ID, inst.Type)
	}
	data, err := encode(inst)
	if err != nil {
		return nil, fmt.Errorf("discovery %s: %w: %w", d.base, ErrBadInstance, err)
	}
	opts := []node.Option{node.WithTakeover()}
	if inst.Type != Dynamic {
		opts = append(opts, node.WithMode(recipes.Persistent))
	}
	return &Registration[P]{inst: inst, node: node.Keep(d.conn, d.path(inst.Name, inst.ID), data, opts...)}, nil
}

// Instance returns the registered instance, with its id and time.
func (r *Registration[P]) Instance() Instance[P] { return r.inst }

// Wait waits until the instance is registered, like [node.Node.Wait].
func (r *Registration[P]) Wait(ctx context.Context) error { return r.node.Wait(ctx) }

// Update changes the instance except its name, id and type.
func (r *Registration[P]) Update(inst Instance[P]) error {
	inst.Name, inst.ID, inst.Type = r.inst.Name, r.inst.ID, r.inst.Type
	if inst.RegistrationTimeUTC == 0 {
		inst.RegistrationTimeUTC = r.inst.RegistrationTimeUTC
	}
	data, err := encode(inst)
	if err != nil {
		return fmt.Errorf("discovery: %w: %w", ErrBadInstance, err)
	}
	r.node.SetData(data)
	return nil
}

// Close unregisters the instance, regardless of its type.
func (r *Registration[P]) Close() { r.node.Close() }

func (d *Discovery[P]) path(parts ...string) string {
	p := d.base
	for _, part := range parts {
		p = recipe.Join(p, part)
	}
	return p
}

// read runs do in a session, and again in the next one if the session ends.
func (d *Discovery[P]) read(ctx context.Context, do func(s recipes.Session) error) error {
	if err := recipe.InSession(ctx, d.conn, do); err != nil {
		return fmt.Errorf("discovery %s: %w", d.base, err)
	}
	return nil
}

// Names returns the sorted names of all services that have, or have had, an instance.
func (d *Discovery[P]) Names(ctx context.Context) (names []string, err error) {
	err = d.read(ctx, func(s recipes.Session) error {
		names, _, err = s.Children(ctx, d.base)
		if errors.Is(err, client.ErrNoNode) {
			return nil
		}
		return err
	})
	slices.Sort(names)
	return names, err
}

// Instance asks the server for one instance. It returns [ErrNotFound] if the instance isn't
// registered.
func (d *Discovery[P]) Instance(ctx context.Context, name, id string) (inst Instance[P], err error) {
	err = d.read(ctx, func(s recipes.Session) error {
		data, _, err := s.Get(ctx, d.path(name, id))
		if errors.Is(err, client.ErrNoNode) {
			return fmt.Errorf("%s/%s: %w", name, id, ErrNotFound)
		}
		if err != nil {
			return err
		}
		return json.Unmarshal(data, &inst)
	})
	return inst, err
}

// Instances asks the server for all instances of a service, sorted by id. It omits znodes
// that are not valid instances. If you call this often, you should use Watch instead.
func (d *Discovery[P]) Instances(ctx context.Context, name string) (list []Instance[P], err error) {
	err = d.read(ctx, func(s recipes.Session) error {
		list = nil
		ids, _, err := s.Children(ctx, d.path(name))
		if err != nil && !errors.Is(err, client.ErrNoNode) {
			return err
		}
		slices.Sort(ids)
		for _, id := range ids {
			data, _, err := s.Get(ctx, d.path(name, id))
			if errors.Is(err, client.ErrNoNode) {
				continue
			}
			if err != nil {
				return err
			}
			var inst Instance[P]
			if json.Unmarshal(data, &inst) == nil {
				list = append(list, inst)
			}
		}
		return nil
	})
	return list, err
}
