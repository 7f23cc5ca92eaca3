package attacks

// Held is the name of the attack by 500 connections, which only meets a limit where there may
// be few.
const Held = "connections that are only held"

// table is all attacks, each of which must cost other clients nothing.
func table() []*attack {
	return []*attack{
		{name: "cookie fields", perSecond: 5, atOnce: 5, once: cookies},
		{name: "invented methods, subresources and labels", perSecond: 50, atOnce: 10, once: invented},
		{name: "streams before authentication, window 0", perSecond: 4, atOnce: 20, once: unknownStreams},
		{name: "refused certificate with a long chain", perSecond: 2, atOnce: 4, once: refusedCertificate},
		{name: "connections that say nothing", perSecond: 10, atOnce: 100, once: silent},
		{name: "readyz", perSecond: 100, atOnce: 10, once: readiness},

		{name: "rapid reset", crowding: true, perSecond: 1, atOnce: 2, once: abuse(2000, rapidReset)},
		{name: "provoked reset", crowding: true, perSecond: 1, atOnce: 2, once: abuse(2000, provokedReset)},
		{name: "pings", crowding: true, perSecond: 1, atOnce: 2, once: abuse(20_000, pings)},
		{name: "settings", crowding: true, perSecond: 1, atOnce: 2, once: abuse(20_000, settings)},
		{name: "a header without end", crowding: true, perSecond: 1, atOnce: 2, once: abuse(20_000, continuations)},
		{name: "empty data", crowding: true, perSecond: 1, atOnce: 2, once: abuse(20_000, emptyData)},

		{name: "POST without its body", perSecond: 1, atOnce: 10, once: holding(100, withoutBody)},
		{name: "lists with window 0", perSecond: 1, atOnce: 10, once: holding(100, unreadList, noWindow)},
		{name: "watches with window 0", perSecond: 0.5, atOnce: 5, once: holding(100, unreadWatch, noWindow)},
		{name: "watches that are not read", perSecond: 0.2, atOnce: 4, once: deafWatch},
		{name: "100 watches, cut", perSecond: 5, atOnce: 5, once: watchesCut},
		{name: "writes for the slow watches", perSecond: 20, atOnce: 5, once: churn},

		{name: "huge selectors", perSecond: 2, atOnce: 5, once: hugeSelector},
		{name: "bodies nested, wide, compressed", perSecond: 2, atOnce: 5, once: bombs},
		{name: "bodies beyond the limit", perSecond: 1, atOnce: 2, once: oversized},

		{name: "10,000 requests in flight", crowding: true, perSecond: 0.1, atOnce: 1, once: crowd(10_000, inFlight, noWindow)},
		{name: "5,000 watches with initial events", crowding: true, perSecond: 0.1, atOnce: 1, once: crowd(5000, initialWatch)},
		{name: "slow readers of large lists", crowding: true, perSecond: 5, atOnce: 50, once: slowReader},
		{name: "bodies without end", crowding: true, perSecond: 5, atOnce: 50, once: endlessBody},
		{name: "flood over HTTP/1.1", crowding: true, perSecond: 200, atOnce: 50, once: flood1},
		{name: "flood over HTTP/2", crowding: true, perSecond: 200, atOnce: 50, once: flood2},
		{name: "1,000 pipelined requests over HTTP/1.1", crowding: true, perSecond: 0.5, atOnce: 4, once: pipelined},
		{name: "impersonation with 1,000 groups", perSecond: 10, atOnce: 10, once: manyGroups},
		{name: "reviews of all rights", perSecond: 50, atOnce: 10, once: rulesReview},
		{name: Held, perSecond: 25, atOnce: 500, once: holding(1, unreadVersion, noWindow)},
		{name: "tokens that fail", perSecond: 50, atOnce: 20, once: failingToken},

		{name: "definitions nested 1,000 deep", perSecond: 0.2, atOnce: 1, once: deepDefinition, needsCustomResources: true},
		{name: "readers of a conversion webhook that hangs", perSecond: 20, atOnce: 100, once: converted, prepare: hangingWebhook, needsCustomResources: true},
	}
}
