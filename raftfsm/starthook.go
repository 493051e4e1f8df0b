package raftfsm

import "errors"

// startEnsemble starts a member of an ensemble.
func (n *Node) startEnsemble() error {
	return errors.New("ensembles are not supported yet")
}
