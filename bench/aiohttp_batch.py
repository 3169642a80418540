"""Runs a file of OpenAI batch lines against a server, as scripts with aiohttp do.

It streams the input, keeps so many requests in flight, retries what may succeed later, appends each result as one JSON
line, and on restart skips the ids that have a result already. It is what Penstock is measured against, so it is meant to
be a good script: no more is done for a line than has to be.
"""

import argparse
import asyncio
import json
import os
import random

import aiohttp

ATTEMPTS = 8
RETRIED = {408, 409, 429, 500, 502, 503, 504}


def finished_ids(path):
    """The ids that have a result. A last line without its end is cut off: its process was killed."""
    ids = set()
    if not os.path.exists(path):
        return ids
    with open(path, "rb+") as results:
        whole = 0
        for line in results:
            if not line.endswith(b"\n"):
                break
            whole += len(line)
            ids.add(json.loads(line)["custom_id"])
        results.truncate(whole)
    return ids


def undone(path, finished):
    """The lines of the input without a result, one at a time."""
    with open(path, "rb") as lines:
        for line in lines:
            if line.strip():
                request = json.loads(line)
                if request["custom_id"] not in finished:
                    yield request


async def send(session, request):
    """The status and body of the last attempt; no status where no answer came."""
    for attempt in range(ATTEMPTS):
        try:
            async with session.post(request["url"], json=request["body"]) as response:
                body = await response.json()
                if response.status not in RETRIED:
                    return response.status, body
                outcome = response.status, body
        except (aiohttp.ClientError, asyncio.TimeoutError) as error:
            outcome = None, str(error)
        await asyncio.sleep(random.uniform(0, min(60, 2**attempt)))
    return outcome


async def worker(session, requests, results):
    for request in requests:
        status, body = await send(session, request)
        failed = status != 200
        record = {
            "custom_id": request["custom_id"],
            "response": None if status is None else {"status_code": status, "body": body},
            "error": body if failed else None,
        }
        # Line by line, so that a killed run has lost nothing that was answered.
        results.write(json.dumps(record) + "\n")
        results.flush()


async def run(arguments):
    # One generator for all workers: whoever is free takes the next line.
    requests = undone(arguments.input, finished_ids(arguments.output))
    connector = aiohttp.TCPConnector(limit=arguments.connections)
    timeout = aiohttp.ClientTimeout(total=600)
    with open(arguments.output, "a", encoding="utf-8") as results:
        async with aiohttp.ClientSession(arguments.url, connector=connector, timeout=timeout) as session:
            workers = (worker(session, requests, results) for _ in range(arguments.connections))
            await asyncio.gather(*workers)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input")
    parser.add_argument("output")
    parser.add_argument("--url", required=True)
    parser.add_argument("--connections", type=int, default=100)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
