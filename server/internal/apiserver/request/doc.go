// Package request says what an HTTP request asks for (Info: verb, resource,
// namespace, name), parses that from path, method and query, and carries along
// what the server reports about the request when it is done (Record).
package request
