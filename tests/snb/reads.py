"""What each read of the benchmark means, in SQL over the same network.

Owns the SQL, written for the test alone: parameters are `$name`, columns in the order of ours.
"""

from __future__ import annotations

from collections.abc import Mapping

# Distances between people: bounded, since the networks of the test are small.
VIEWS = """
CREATE VIEW friends AS
    SELECT a, b, creationDate FROM knows UNION ALL SELECT b, a, creationDate FROM knows;
CREATE TABLE circle AS
    WITH RECURSIVE walk(a, b, d) AS (
        SELECT a, b, 1 FROM friends
        UNION
        SELECT w.a, f.b, w.d + 1 FROM walk w JOIN friends f ON w.b = f.a WHERE w.d < 8
    )
    SELECT a, b, min(d) AS d FROM walk WHERE a <> b GROUP BY a, b;
CREATE TABLE root AS
    WITH RECURSIVE up(message, above) AS (
        SELECT number, number FROM message
        UNION ALL
        SELECT up.message, m.parent FROM up JOIN message m ON up.above = m.number
        WHERE m.parent IS NOT NULL
    )
    SELECT message, above AS post FROM up JOIN message m ON up.above = m.number
    WHERE m.kind = 'Post';
CREATE TABLE kind_of AS
    WITH RECURSIVE up(class, above) AS (
        SELECT number, number FROM tagclass
        UNION ALL
        SELECT up.class, t.parent FROM up JOIN tagclass t ON up.above = t.number
        WHERE t.parent IS NOT NULL
    )
    SELECT class, above FROM up;
"""

SHORT: Mapping[str, str] = {
    "is1_profile": """
        SELECT firstName, lastName, birthday, ip, browser, city, gender, creationDate
        FROM person WHERE number = $person""",
    "is2_recent_messages": """
        SELECT m.number, coalesce(m.content, m.imageFile), m.creationDate, o.number, p.number,
            p.firstName, p.lastName
        FROM message m JOIN root r ON r.message = m.number JOIN message o ON o.number = r.post
            JOIN person p ON p.number = o.creator
        WHERE m.creator = $person ORDER BY m.creationDate DESC, m.number DESC LIMIT 10""",
    "is3_friends": """
        SELECT p.number, p.firstName, p.lastName, f.creationDate
        FROM friends f JOIN person p ON p.number = f.b WHERE f.a = $person
        ORDER BY f.creationDate DESC, p.number""",
    "is4_content": """
        SELECT creationDate, coalesce(content, imageFile) FROM message WHERE number = $message""",
    "is5_creator": """
        SELECT p.number, p.firstName, p.lastName
        FROM message m JOIN person p ON p.number = m.creator WHERE m.number = $message""",
    "is6_forum": """
        SELECT f.number, f.title, p.number, p.firstName, p.lastName
        FROM root r JOIN message o ON o.number = r.post JOIN forum f ON f.number = o.forum
            JOIN person p ON p.number = f.moderator
        WHERE r.message = $message""",
    "is7_replies": """
        SELECT c.number, c.content, c.creationDate, p.number, p.firstName, p.lastName,
            EXISTS (SELECT 1 FROM friends f WHERE f.a = m.creator AND f.b = c.creator)
        FROM message m JOIN message c ON c.parent = m.number JOIN person p ON p.number = c.creator
        WHERE m.number = $message ORDER BY c.creationDate DESC, p.number""",
}

COMPLEX: Mapping[str, str] = {
    "ic1_friends_with_name": """
        SELECT p.number, p.lastName, w.d, p.birthday, c.name,
            coalesce((SELECT list({'n': u.name, 'y': s.classYear} ORDER BY u.name) FROM study s
                JOIN university u ON u.number = s.university WHERE s.person = p.number), []),
            coalesce((SELECT list({'n': o.name, 'y': s.workFrom} ORDER BY o.name) FROM work s
                JOIN company o ON o.number = s.company WHERE s.person = p.number), [])
        FROM circle w JOIN person p ON p.number = w.b JOIN city c ON c.number = p.city
        WHERE w.a = $person AND w.d <= 3 AND p.firstName = $first
        ORDER BY w.d, p.lastName, p.number LIMIT 20""",
    "ic2_messages_of_friends": """
        SELECT p.number, p.firstName, p.lastName, m.number, coalesce(m.content, m.imageFile),
            m.creationDate
        FROM circle w JOIN person p ON p.number = w.b JOIN message m ON m.creator = p.number
        WHERE w.a = $person AND w.d = 1 AND m.creationDate < $before
        ORDER BY m.creationDate DESC, m.number LIMIT 20""",
    "ic3_foreign_posters": """
        WITH counted AS (
            SELECT p.number, count(*) FILTER (c.name = $x) AS x, count(*) FILTER (c.name = $y) AS y
            FROM circle w JOIN person p ON p.number = w.b JOIN city t ON t.number = p.city
                JOIN country home ON home.number = t.country
                JOIN message m ON m.creator = p.number JOIN country c ON c.number = m.country
            WHERE w.a = $person AND w.d <= 2 AND home.name NOT IN ($x, $y)
                AND m.creationDate >= $start AND m.creationDate < $start + to_days($days)
            GROUP BY p.number
        )
        SELECT number, x, y, x + y FROM counted WHERE x > 0 AND y > 0
        ORDER BY x + y DESC, number LIMIT 20""",
    "ic4_new_topics": """
        WITH tagged AS (
            SELECT m.number, t.name, m.creationDate
            FROM circle w JOIN message m ON m.creator = w.b JOIN message_tag g
                ON g.message = m.number JOIN tag t ON t.number = g.tag
            WHERE w.a = $person AND w.d = 1 AND m.kind = 'Post'
        )
        SELECT name, count(DISTINCT number) AS n FROM tagged
        WHERE creationDate >= $start AND creationDate < $start + to_days($days)
            AND name NOT IN (SELECT name FROM tagged WHERE creationDate < $start)
        GROUP BY name ORDER BY n DESC, name LIMIT 10""",
    "ic5_new_groups": """
        SELECT f.number, f.title, sum((
            SELECT count(*) FROM message m WHERE m.forum = f.number AND m.creator = w.b
        ))::BIGINT AS n
        FROM circle w JOIN member j ON j.person = w.b JOIN forum f ON f.number = j.forum
        WHERE w.a = $person AND w.d <= 2 AND j.joinDate > $after
        GROUP BY f.number, f.title ORDER BY n DESC, f.number LIMIT 20""",
    "ic6_tags_together": """
        SELECT t.name, count(DISTINCT m.number) AS n
        FROM circle w JOIN message m ON m.creator = w.b
            JOIN message_tag g ON g.message = m.number JOIN tag t ON t.number = g.tag
        WHERE w.a = $person AND w.d <= 2 AND m.kind = 'Post' AND t.name <> $name
            AND EXISTS (SELECT 1 FROM message_tag o JOIN tag k ON k.number = o.tag
                WHERE o.message = m.number AND k.name = $name)
        GROUP BY t.name ORDER BY n DESC, t.name LIMIT 10""",
    "ic7_likers": """
        SELECT p.number, p.firstName, p.lastName, l.creationDate, m.number,
            floor(epoch(l.creationDate - m.creationDate) / 60)::BIGINT,
            NOT EXISTS (SELECT 1 FROM friends f WHERE f.a = $person AND f.b = p.number)
        FROM message m JOIN likes l ON l.message = m.number JOIN person p ON p.number = l.person
        WHERE m.creator = $person
        QUALIFY row_number() OVER (PARTITION BY p.number ORDER BY l.creationDate DESC) = 1
        ORDER BY l.creationDate DESC, m.number LIMIT 20""",
    "ic8_replies": """
        SELECT p.number, p.firstName, p.lastName, c.creationDate, c.number, c.content
        FROM message m JOIN message c ON c.parent = m.number JOIN person p ON p.number = c.creator
        WHERE m.creator = $person ORDER BY c.creationDate DESC, c.number LIMIT 20""",
    "ic9_messages_around": """
        SELECT p.number, p.firstName, p.lastName, m.number, coalesce(m.content, m.imageFile),
            m.creationDate
        FROM circle w JOIN person p ON p.number = w.b JOIN message m ON m.creator = p.number
        WHERE w.a = $person AND w.d <= 2 AND m.creationDate < $before
        ORDER BY m.creationDate DESC, m.number LIMIT 20""",
    "ic10_recommendations": """
        WITH posts AS (
            SELECT m.creator, m.number, EXISTS (
                SELECT 1 FROM message_tag g JOIN interest i ON i.tag = g.tag
                WHERE g.message = m.number AND i.person = $person) AS common
            FROM message m WHERE m.kind = 'Post'
        )
        SELECT p.number, p.firstName, p.lastName, (
            SELECT count(*) FILTER (common) - count(*) FILTER (NOT common)
            FROM posts WHERE creator = p.number) AS score, p.gender, c.name
        FROM circle w JOIN person p ON p.number = w.b JOIN city c ON c.number = p.city
        WHERE w.a = $person AND w.d = 2 AND (
            (month(p.birthday) = $month AND day(p.birthday) >= 21)
            OR (month(p.birthday) = $month % 12 + 1 AND day(p.birthday) < 22))
        ORDER BY score DESC, p.number LIMIT 10""",
    "ic11_jobs": """
        SELECT p.number, p.firstName, p.lastName, o.name, j.workFrom
        FROM circle w JOIN person p ON p.number = w.b JOIN work j ON j.person = p.number
            JOIN company o ON o.number = j.company JOIN country c ON c.number = o.country
        WHERE w.a = $person AND w.d <= 2 AND c.name = $country AND j.workFrom < $year
        ORDER BY j.workFrom, p.number, o.name DESC LIMIT 10""",
    "ic12_experts": """
        SELECT p.number, p.firstName, p.lastName, list_sort(list(DISTINCT t.name)),
            count(DISTINCT m.number) AS n
        FROM circle w JOIN person p ON p.number = w.b JOIN message m ON m.creator = p.number
            JOIN message o ON o.number = m.parent JOIN message_tag g ON g.message = o.number
            JOIN tag t ON t.number = g.tag JOIN kind_of k ON k.class = t.class
            JOIN tagclass c ON c.number = k.above
        WHERE w.a = $person AND w.d = 1 AND m.kind = 'Comment' AND o.kind = 'Post'
            AND c.name = $class
        GROUP BY p.number, p.firstName, p.lastName ORDER BY n DESC, p.number LIMIT 20""",
    "ic13_distance": """
        SELECT CASE WHEN $a = $b THEN 0 ELSE
            coalesce((SELECT d FROM circle WHERE a = $a AND b = $b), -1) END""",
    "ic14_trusted_paths": """
        WITH RECURSIVE ways(here, way) AS (
            SELECT $a::BIGINT, [$a::BIGINT]
            UNION ALL
            SELECT f.b, list_append(way, f.b)
            FROM ways JOIN friends f ON f.a = here
                JOIN circle c ON c.a = $a AND c.b = f.b AND c.d = len(way)
                JOIN circle e ON e.a = $a AND e.b = $b AND e.d > len(way) - 1
        ), talk AS (
            SELECT c.creator AS x, m.creator AS y, sum(if(m.kind = 'Post', 1.0, 0.5)) AS weight
            FROM message c JOIN message m ON m.number = c.parent GROUP BY ALL
        )
        SELECT way, coalesce((
            SELECT sum(t.weight) FROM range(1, len(way)) s(n) JOIN talk t
                ON (t.x = way[n] AND t.y = way[n + 1]) OR (t.x = way[n + 1] AND t.y = way[n])
        ), 0)::DOUBLE AS weight
        FROM ways WHERE here = $b ORDER BY weight DESC, way""",
}
