// Package process starts the servers of the tests, as an operator does: it starts and ends
// any process (Proc), starts the zkgo binary (Server), asks servers four-letter words
// (Word, Ask), and talks to them over raw frames (Client). Nothing else in tests starts a
// server or sends a four-letter word.
//
// It imports proto and tests/kit/wait.
package process
