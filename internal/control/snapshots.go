package control

func postSnapshot(c *call) (any, error) {
	s, err := c.one()
	if err != nil {
		return nil, err
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	it := s.Snapshot()
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.next()
	c.snapshots[id] = it
	return map[string]string{"id": id}, nil
}

func postReset(c *call) (any, error) {
	id := c.r.PathValue("id")
	c.mu.Lock()
	it, ok := c.snapshots[id]
	c.mu.Unlock()
	if !ok {
		return nil, missing("there is no snapshot %q", id)
	}
	c.turn.Lock()
	defer c.turn.Unlock()
	c.servers[0].Reset(it)
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.faults) // Reset has cancelled them
	return none{}, nil
}

func deleteSnapshot(c *call) (any, error) {
	id := c.r.PathValue("id")
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.snapshots[id]; !ok {
		return nil, missing("there is no snapshot %q", id)
	}
	delete(c.snapshots, id)
	return none{}, nil
}
