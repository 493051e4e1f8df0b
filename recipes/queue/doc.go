// Package queue hands items from producers to consumers: [Queue] first in first
// out, [Priority], [Delay] and [ID] in other orders, [Simple] with bare data.
//
//	q := queue.New(recipes.On(c), "/queues/mail")
//	err := q.Put(ctx, []byte("letter"))
//	…
//	for item, err := range q.Items(ctx) {
//		if err != nil {
//			return err
//		}
//		if err := send(item.Values[0]); err != nil {
//			_ = item.Return(ctx)
//			continue
//		}
//		err = item.Ack(ctx)
//	}
//
// # Rules
//
// It imports recipes/election, recipes and client. Invariants:
//
//   - An item leaves the queue only in the transaction that also ends its
//     consumer's claim, in the session of the claim: with the session ends the
//     claim, and the item is there for others. So an item is processed at least
//     once, and by one at a time as long as consumers heed Done.
//   - A Put without an answer may have been done: the layout has no room for a mark,
//     so the error says [client.ErrUnknownOutcome]. It was done once at most.
//   - A Sharder adds a queue only in a transaction that also checks that it leads.
//   - The znodes are Curator's (DistributedQueue and its kin with a lock path,
//     SimpleDistributedQueue and QueueSharder), items encoded as its ItemSerializer does.
package queue
