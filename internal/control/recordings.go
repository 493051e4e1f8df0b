package control

import "github.com/zkgo/zkgo/server/zktest"

func postRecording(c *call) (any, error) {
	var in match
	if err := c.body(&in); err != nil {
		return nil, err
	}
	servers, err := c.some()
	if err != nil {
		return nil, err
	}
	var list []*zktest.Recording
	for _, s := range servers {
		list = append(list, s.Record(in.zktest(0)))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.next()
	c.recordings[id] = list
	return map[string]string{"id": id}, nil
}

// recording returns the recording that the URL path names.
func (c *call) recording() (string, []*zktest.Recording, error) {
	id := c.r.PathValue("id")
	c.mu.Lock()
	defer c.mu.Unlock()
	list, ok := c.recordings[id]
	if !ok {
		return id, nil, missing("there is no recording %q", id)
	}
	return id, list, nil
}

// getRecording returns the lines in order. All lines of one server come before the lines of
// the next.
func getRecording(c *call) (any, error) {
	_, list, err := c.recording()
	lines := []string{}
	for _, r := range list {
		lines = append(lines, r.Lines()...)
	}
	return map[string][]string{"lines": lines}, err
}

func deleteRecording(c *call) (any, error) {
	id, list, err := c.recording()
	if err != nil {
		return nil, err
	}
	for _, r := range list {
		r.Stop()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.recordings, id)
	return none{}, nil
}
