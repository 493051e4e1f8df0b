// Package diagnose says in words why there is no connection to a server: it describes
// errors, and asks the server's port once more where an error says too little. A
// [Trouble] watches a client and reports new causes immediately.
//
// It works with any ZooKeeper: it imports package client and the standard library only.
package diagnose
