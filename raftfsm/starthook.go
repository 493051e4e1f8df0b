package raftfsm

import "errors"

// startEnsemble starts a member of an ensemble.
func (n *Node) startEnsemble() error {
	return errors.New("ensembles are not supported yet")
}

// applyReconfig applies a step of a change of membership.
func (m *machine) applyReconfig(server uint8, c *Command) error {
	return errUnknownCommand
}
